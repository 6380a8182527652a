// Where the page lives. A proxy may put any path in front, so the server writes only the way back to
// the root into <base>. It is relative to the address, which changes as one moves about: it is
// resolved once, and written back whole.

const base = document.querySelector("base")!;
export const root = new URL(base.href);
base.href = root.href;

/** The address of something on the server, from its path below the root. */
export function address(path: string): string {
  return new URL(path.replace(/^\/+/, ""), root).href;
}

/** The path below the root of the page that is shown, in its parts. */
export function parts(pathname: string): string[] {
  const below = pathname.startsWith(root.pathname) ? pathname.slice(root.pathname.length) : pathname;
  return below.split("/").filter(Boolean).map(decodePart);
}

export function pathOf(...names: string[]): string {
  return names.map(encodeURIComponent).join("/");
}

function decodePart(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
