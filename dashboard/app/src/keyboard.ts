// Keys that work on every page, and those that a page adds while it is shown.

import { useEffect } from "preact/hooks";
import { Observed } from "./observe";

export interface Shortcut {
  keys: string;
  says: string;
  /** Missing where what has the focus takes these keys itself. */
  act?: (event: KeyboardEvent) => void;
}

const shortcuts = new Observed<readonly Shortcut[]>([]);
export const shownShortcuts = shortcuts;

function isTyping(target: EventTarget | null): boolean {
  const element = target as HTMLElement | null;
  return !!element?.closest?.("input, textarea, select, [contenteditable=true]");
}

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (isTyping(event.target)) {
    if (event.key === "Escape") (event.target as HTMLElement).blur();
    return;
  }
  // What was added last is nearest to what one looks at.
  const shortcut = shortcuts.value.findLast((shortcut) => shortcut.keys.split(" ").includes(event.key));
  if (!shortcut?.act) return;
  event.preventDefault();
  shortcut.act(event);
});

/** Shortcuts for as long as the component is shown. */
export function useShortcuts(list: readonly Shortcut[], inputs: readonly unknown[]): void {
  useEffect(() => {
    shortcuts.set([...shortcuts.value, ...list]);
    return () => shortcuts.set(shortcuts.value.filter((shortcut) => !list.includes(shortcut)));
  }, inputs as unknown[]);
}
