// Light or dark: as the system has it, unless somebody chose.

import { Observed } from "./observe";

export type Theme = "light" | "dark";
const STORED = "runyard-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

function chosen(): Theme | null {
  try {
    const stored = localStorage.getItem(STORED);
    return stored === "light" || stored === "dark" ? stored : null;
  } catch {
    return null; // Storage may be forbidden.
  }
}

function current(): Theme {
  return chosen() ?? (system.matches ? "dark" : "light");
}

export const theme = new Observed<Theme>(current());

function apply(): void {
  document.documentElement.dataset.theme = current();
  theme.set(current());
}

export function startTheme(): void {
  apply();
  system.addEventListener("change", apply);
  addEventListener("storage", apply);
}

export function switchTheme(): void {
  const next: Theme = current() === "dark" ? "light" : "dark";
  try {
    // The system's own choice needs no memory.
    if ((next === "dark") === system.matches) localStorage.removeItem(STORED);
    else localStorage.setItem(STORED, next);
  } catch {
    document.documentElement.dataset.theme = next;
    theme.set(next);
    return;
  }
  apply();
}
