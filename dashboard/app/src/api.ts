// The server's own API. Every request carries the page's half of its session.

import { address, root } from "./root";
import { confirmed, forgetHalf, keepHalf, sessionHeaders } from "./session";

export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
  /** Whether asking again may help: nobody answered, or the server has trouble of its own. */
  get passes(): boolean {
    return this.status === 0 || this.status >= 500;
  }
}

type Query = Record<string, string | number | boolean | null | undefined | string[]>;

export interface Asking {
  query?: Query;
  signal?: AbortSignal;
  /** What kind of answer is wanted, where the server has several. */
  accept?: string;
}

export function withQuery(path: string, query: Query = {}): string {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (Array.isArray(value)) value.forEach((item) => words.append(name, item));
    else if (value !== null && value !== undefined) words.set(name, String(value));
  }
  const text = words.toString();
  return text ? `${path}?${text}` : path;
}

export async function ask(method: string, path: string, body: unknown, more: Asking = {}): Promise<Response> {
  const headers = sessionHeaders();
  if (more.accept) headers.Accept = more.accept;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response: Response;
  try {
    response = await fetch(address(withQuery(path, more.query)), {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: more.signal,
      credentials: "same-origin",
      // A page that is being closed still says what it has to say.
      keepalive: method === "DELETE" || method === "PATCH",
    });
  } catch (error) {
    if ((error as Error).name === "AbortError") throw error;
    throw new ApiError(0, "The server does not answer.");
  }
  if (response.ok) return response;
  if (response.status === 401) loggedOut.forEach((listener) => listener());
  const refusal = (await response.json().catch(() => ({}))) as { error?: string; confirm?: string };
  if (refusal.confirm) {
    if (await confirmed(refusal.confirm)) return ask(method, path, body, more);
    throw new ApiError(response.status, "Not confirmed: nothing was changed.");
  }
  throw new ApiError(response.status, refusal.error ?? `The server answered ${response.status}.`);
}

/** Called when a request is refused because nobody is logged in. */
export const loggedOut = new Set<() => void>();

export async function get<T>(path: string, more?: Asking): Promise<T> {
  return (await (await ask("GET", path, undefined, more)).json()) as T;
}

export async function getText(path: string, more?: Asking): Promise<string> {
  return await (await ask("GET", path, undefined, more)).text();
}

export async function postForBytes(path: string, body: unknown, more?: Asking): Promise<ArrayBuffer> {
  return await (await ask("POST", path, body, more)).arrayBuffer();
}

export async function post<T>(path: string, body: unknown = {}, more?: Asking): Promise<T> {
  return (await (await ask("POST", path, body, more)).json()) as T;
}

export async function patch<T>(path: string, body: unknown, more?: Asking): Promise<T> {
  return (await (await ask("PATCH", path, body, more)).json()) as T;
}

export async function put<T>(path: string, body: unknown, more?: Asking): Promise<T> {
  return (await (await ask("PUT", path, body, more)).json()) as T;
}

export async function del<T>(path: string, more?: Asking): Promise<T> {
  return (await (await ask("DELETE", path, undefined, more)).json()) as T;
}

/** Exchange a one-time code, or a key, for a session: a cookie for this path, and the page's half.
 * `replace`: instead of the session of another user, which is otherwise an error 409. */
export async function logIn(code: string, replace: boolean): Promise<void> {
  keepHalf(await post("api/login", { code, replace, path: root.pathname, secure: location.protocol === "https:" }));
}

/** Log in by a link. Anybody can send one: if it is another user's, the session stays unless `agreed`. */
export async function followLink(code: string, agreed: (says: string) => Promise<boolean>): Promise<void> {
  try {
    await logIn(code, false);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 409) throw error;
    if (await agreed(error.message)) await logIn(code, true);
  }
}

export async function logOut(): Promise<void> {
  await post("api/logout", { path: root.pathname });
  forgetHalf();
}

/** What people paste: the code of a link, the code alone, or a key. */
export function pastedCode(text: string): string {
  const trimmed = text.trim();
  return trimmed.includes("code=") ? trimmed.slice(trimmed.indexOf("code=") + 5) : trimmed;
}
