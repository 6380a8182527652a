// Short words at the lower edge: what was done, and a way back.

import { Observed, useObserved } from "../observe";
import { Icon } from "./Icon";

interface Toast {
  id: number;
  text: string;
  kind: "done" | "failed";
  undo?: () => void;
}

const toasts = new Observed<readonly Toast[]>([]);
let last = 0;
const UNDO_SECONDS = 12;

function drop(id: number): void {
  toasts.set(toasts.value.filter((toast) => toast.id !== id));
}

export function say(text: string, kind: Toast["kind"] = "done"): void {
  const id = ++last;
  toasts.set([...toasts.value.slice(-3), { id, text, kind }]);
  setTimeout(() => drop(id), kind === "failed" ? 10_000 : 4_000);
}

/** Something was done that can be done backwards. */
export function sayWithUndo(text: string, undo: () => void): void {
  const id = ++last;
  const back = () => {
    drop(id);
    undo();
  };
  toasts.set([...toasts.value.slice(-3), { id, text, kind: "done", undo: back }]);
  setTimeout(() => drop(id), UNDO_SECONDS * 1000);
}

/** Do something that cannot be taken back, but only after a time in which it can. */
export function afterAWhile(text: string, act: () => Promise<unknown>, back: () => void): void {
  const id = ++last;
  let settled = false;
  const settle = (undone: boolean) => {
    if (settled) return;
    settled = true;
    clearTimeout(timer);
    removeEventListener("pagehide", leave);
    drop(id);
    if (undone) back();
    else
      act().catch((error: Error) => {
        back();
        say(error.message, "failed");
      });
  };
  // Who closes the page has not taken it back.
  const leave = () => settle(false);
  const timer = setTimeout(leave, UNDO_SECONDS * 1000);
  addEventListener("pagehide", leave);
  toasts.set([...toasts.value.slice(-3), { id, text, kind: "done", undo: () => settle(true) }]);
}

/** Try something; what fails is said. */
export async function attempt<T>(work: Promise<T>, done?: string): Promise<T | null> {
  try {
    const result = await work;
    if (done) say(done);
    return result;
  } catch (error) {
    say((error as Error).message, "failed");
    return null;
  }
}

export function Toasts() {
  const shown = useObserved(toasts);
  return (
    <div class="toasts" role="status" aria-live="polite">
      {shown.map((toast) => (
        <div class={`toast ${toast.kind}`} key={toast.id}>
          <span>{toast.text}</span>
          {toast.undo && (
            <button class="link" onClick={toast.undo}>
              Undo
            </button>
          )}
          {!toast.undo && (
            <button class="quiet" aria-label="Close" onClick={() => drop(toast.id)}>
              <Icon name="close" size={12} />
            </button>
          )}
        </div>
      ))}
    </div>
  );
}
