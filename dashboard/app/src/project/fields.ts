// What a run has, by name: `state`, `config.lr`, `summary.val/loss`; or short, `lr`.

import { runtimeOf, type Run } from "./runs";

type Read = (run: Run) => unknown;

const OWN: Record<string, Read> = {
  name: (run) => run.name,
  id: (run) => run.id,
  state: (run) => run.state,
  user: (run) => run.user,
  group: (run) => run.group,
  job_type: (run) => run.job_type,
  sweep: (run) => run.sweep,
  tag: (run) => run.tags,
  tags: (run) => run.tags,
  notes: (run) => run.notes,
  host: (run) => run.host,
  created: (run) => run.created_at,
  runtime: runtimeOf,
  exit_code: (run) => run.exit_code,
};

/** How to read a field. A short name is a config's, or else the summary's. */
export function reader(name: string): Read {
  if (name in OWN) return OWN[name]!;
  if (name.startsWith("config.")) return (run) => run.config[name.slice(7)];
  if (name.startsWith("summary.")) return (run) => run.summary[name.slice(8)];
  return (run) => run.config[name] ?? run.summary[name];
}

/** The config and summary names that must be asked for, so that these fields can be read. */
export function columnsOf(names: Iterable<string>): { config: string[]; summary: string[] } {
  const config = new Set<string>();
  const summary = new Set<string>();
  for (const name of names) {
    if (name in OWN) continue;
    if (name.startsWith("config.")) config.add(name.slice(7));
    else if (name.startsWith("summary.")) summary.add(name.slice(8));
    else {
      config.add(name);
      summary.add(name);
    }
  }
  return { config: [...config], summary: [...summary] };
}

/** Missing values last, numbers before texts, whichever way is up. */
export function comparer(name: string, descending: boolean): (one: Run, other: Run) => number {
  const read = reader(name);
  const turn = descending ? -1 : 1;
  return (one, other) => {
    const [a, b] = [read(one), read(other)];
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
