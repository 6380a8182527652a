// The page's half of its session. The cookie goes to every port of the host, so it is not enough: the
// proof is kept here, where a browser separates ports, and is sent with everything that is fetched.

import { Observed } from "./observe";
import { address, root } from "./root";

interface Half {
  proof: string;
  /** For images and downloads, which can send no header: it reads files and nothing else. */
  ticket: string;
}

// Below a proxy, several servers share an origin.
const NAME = `runyard session ${root.pathname}`;

export function keepHalf(half: Half): void {
  localStorage.setItem(NAME, JSON.stringify({ proof: half.proof, ticket: half.ticket }));
}

export function forgetHalf(): void {
  localStorage.removeItem(NAME);
}

/** Read anew each time: another tab may have logged in since. */
function half(): Half | null {
  try {
    return JSON.parse(localStorage.getItem(NAME) ?? "null") as Half | null;
  } catch {
    return null;
  }
}

/** What every request carries; no other site's page can send the header. */
export function sessionHeaders(): Record<string, string> {
  return { "X-Runyard": half()?.proof ?? "page" };
}

/** The address of a file that the browser loads by itself. */
export function fileAddress(path: string): string {
  return `${address(path)}?ticket=${half()?.ticket ?? ""}`;
}

interface Question {
  /** Prints the code that answers it. */
  command: string;
  settle: (isConfirmed: boolean) => void;
}

/** Asked while the server waits for a proof that it is the user who administers. */
export const question = new Observed<Question | null>(null);
let answer: Promise<boolean> | null = null;

/** Have the user confirm; several requests at once ask one question. */
export function confirmed(command: string): Promise<boolean> {
  answer ??= new Promise<boolean>((settle) => question.set({ command, settle })).finally(() => {
    question.set(null);
    answer = null;
  });
  return answer;
}
