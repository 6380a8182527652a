// What a run has, by name: `state`, `config.lr`, `summary.val/loss`, `best.val/loss`; or short, `lr`.

import { runColumn, type Read } from "./columns";
import type { Run } from "./runs";

/** How to read a field. A short name is a config's, or else the summary's. */
export function reader(name: string): Read {
  const own = runColumn(name);
  if (own) return own.read;
  if (name.startsWith("config.")) return (run) => run.config[name.slice(7)];
  if (name.startsWith("summary.")) return (run) => run.summary[name.slice(8)];
  if (name.startsWith("best.")) return (run) => run.best[name.slice(5)];
  return (run) => run.config[name] ?? run.summary[name];
}

/** What a search compares. */
export function soughtReader(name: string): Read {
  return runColumn(name)?.sought ?? reader(name);
}

/** The names of configs, summaries and sweeps' metrics that must be asked for, so that these fields can be read. */
export function columnsOf(names: Iterable<string>): Record<"config" | "summary" | "best", string[]> {
  const config = new Set<string>();
  const summary = new Set<string>();
  const best = new Set<string>();
  for (const name of names) {
    if (runColumn(name)) continue;
    if (name.startsWith("config.")) config.add(name.slice(7));
    else if (name.startsWith("summary.")) summary.add(name.slice(8));
    else if (name.startsWith("best.")) best.add(name.slice(5));
    else {
      config.add(name);
      summary.add(name);
    }
  }
  return { config: [...config], summary: [...summary], best: [...best] };
}

/** Missing values last, numbers before texts, whichever way is up. */
export function comparer(name: string, descending: boolean): (a: Run, b: Run) => number {
  const read = reader(name);
  const turn = descending ? -1 : 1;
  return (first, second) => {
    const [a, b] = [read(first), read(second)];
    const [noA, noB] = [isMissing(a), isMissing(b)];
    if (noA || noB) return noA === noB ? 0 : noA ? 1 : -1;
    if (typeof a === "number" && typeof b === "number") return turn * (a - b);
    if (typeof a === "number") return -1;
    if (typeof b === "number") return 1;
    return turn * String(a).localeCompare(String(b), undefined, { numeric: true });
  };
}

function isMissing(value: unknown): boolean {
  return value === null || value === undefined || value === "NaN" || (Array.isArray(value) && !value.length);
}
