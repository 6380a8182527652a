// The address holds the whole view: its path says which page, its query how one looks at it. So a
// link that is sent to somebody shows what its sender saw, and Back undoes.

import { useCallback } from "preact/hooks";
import { Observed, useObserved } from "./observe";
import { address, parts } from "./root";

export interface Place {
  parts: string[];
  query: URLSearchParams;
}

function here(): Place {
  return { parts: parts(location.pathname), query: new URLSearchParams(location.search) };
}

const place = new Observed<Place>(here());
addEventListener("popstate", () => {
  lastChange = { names: "", at: -Infinity };
  place.set(here());
});

export function usePlace(): Place {
  return useObserved(place);
}

export function navigate(path: string, options: { replace?: boolean } = {}): void {
  const target = address(path);
  if (options.replace) history.replaceState(null, "", target);
  else history.pushState(null, "", target);
  place.set(here());
  if (!options.replace) scrollTo(0, 0);
}

// Letters that are typed and a slider that is moved are one change: Back undoes them together.
const ONE_CHANGE_MS = 1_500;
let lastChange = { names: "", at: -Infinity };

/** Change what the query says; null takes a word out. Back undoes it. */
export function changeQuery(change: Record<string, string | null>): void {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(change)) {
    if (value === null || value === "") query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  const target = location.pathname + (text ? `?${text}` : "") + location.hash;
  if (target === location.pathname + location.search + location.hash) return;
  const names = Object.keys(change).join();
  const now = performance.now();
  if (names === lastChange.names && now - lastChange.at < ONE_CHANGE_MS) history.replaceState(null, "", target);
  else history.pushState(null, "", target);
  lastChange = { names, at: now };
  place.set(here());
}

/** One word of the query as a value: what it is, and how to change it. */
export function useQuery(name: string, fallback = ""): [string, (value: string | null) => void] {
  const { query } = usePlace();
  const value = query.get(name) ?? fallback;
  const change = useCallback(
    (next: string | null) => changeQuery({ [name]: next === fallback ? null : next }),
    [name, fallback],
  );
  return [value, change];
}

/** A click that the browser should not handle itself: no new tab, no download. */
function isPlain(event: MouseEvent): boolean {
  return event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
}

/** Links to our own pages move without loading anything anew. */
export function followLinks(): void {
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || !isPlain(event)) return;
    const link = (event.target as Element | null)?.closest?.("a[data-page]") as HTMLAnchorElement | null;
    if (!link) return;
    event.preventDefault();
    history.pushState(null, "", link.href);
    place.set(here());
    scrollTo(0, 0);
  });
}
