// A project's runs as the page keeps them: columns from the server, merged as they change.

import { get } from "../api";
import type { RunColumns as Answer } from "../shapes";

export type { FieldName as Key, FieldNames as Keys } from "../shapes";

export interface Run {
  key: number;
  id: string;
  name: string;
  state: string;
  user: string | null;
  group: string | null;
  job_type: string | null;
  sweep: string | null;
  sweep_name: string | null;
  tags: string[];
  notes: string | null;
  host: string | null;
  created_at: number;
  started_at: number | null;
  ended_at: number | null;
  heartbeat_at: number | null;
  exit_code: number | null;
  config: Record<string, unknown>;
  summary: Record<string, unknown>;
  /** What the run counts by in its sweep: the best value that it has logged. */
  best: Record<string, unknown>;
}

export interface Wanted {
  config: readonly string[];
  summary: readonly string[];
  best: readonly string[];
}

export const NO_COLUMNS: Wanted = { config: [], summary: [], best: [] };

// The first slice fills the screen; the table is sorted anew after each, so later ones are longer.
const FIRST_SLICE = 500;
const LONGEST_SLICE = 16_000;

export class RunList {
  revision = 0;
  /** How many there are, with those that are still to come. */
  total = 0;
  private byKey = new Map<number, Run>();
  private loading: Promise<void> = Promise.resolve();
  private turn = 0;

  constructor(private readonly path: string) {}

  get runs(): Run[] {
    return [...this.byKey.values()];
  }

  /** Everything anew, with these columns, slice by slice; `shown` is called after each. */
  load(wanted: Wanted, shown: () => void): Promise<void> {
    const loading = this.loadSlices(wanted, shown, ++this.turn);
    this.loading = loading.catch(() => {});
    return loading;
  }

  private async loadSlices(wanted: Wanted, shown: () => void, turn: number): Promise<void> {
    const loaded = new Map<number, Run>();
    let revision = 0;
    let last: Run | undefined;
    for (let limit = FIRST_SLICE; ; limit = Math.min(4 * limit, LONGEST_SLICE)) {
      const from = last ? { before: last.created_at, key: last.key } : {};
      const answer = await get<Answer>(`${this.path}/runs`, { query: { config: [...wanted.config], summary: [...wanted.summary], best: [...wanted.best], limit, ...from } });
      if (turn !== this.turn) return;
      // What changes while the slices come is told by the news since the first.
      revision ||= answer.revision;
      const slice = rows(answer);
      slice.forEach((run) => loaded.set(run.key, run));
      last = slice.at(-1);
      const isOver = slice.length < limit;
      // Rows of an earlier load stay in sight until theirs come.
      this.byKey = isOver ? loaded : new Map([...this.byKey, ...slice.map((run) => [run.key, run] as const)]);
      this.total = isOver ? loaded.size : answer.total;
      this.revision = revision;
      shown();
      if (isOver) return;
    }
  }

  /** What changed since; answers whether anything did. */
  async update(wanted: Wanted): Promise<boolean> {
    await this.loading;
    const answer = await get<Answer>(`${this.path}/runs`, {
      query: { config: [...wanted.config], summary: [...wanted.summary], best: [...wanted.best], since: this.revision },
    });
    const changed = rows(answer);
    if (answer.whole) this.byKey = new Map();
    // New runs come first, as in the whole list.
    const fresh = changed.filter((run) => !this.byKey.has(run.key));
    for (const run of changed) if (this.byKey.has(run.key)) this.byKey.set(run.key, run);
    if (fresh.length) this.byKey = new Map([...fresh.map((run) => [run.key, run] as const), ...this.byKey]);
    answer.deleted.forEach((key) => this.byKey.delete(key));
    this.total = this.byKey.size;
    this.revision = answer.revision;
    return changed.length > 0 || answer.deleted.length > 0;
  }

  /** Runs that the page itself took away. */
  remove(keys: readonly number[]): void {
    keys.forEach((key) => this.byKey.delete(key));
  }

  find(key: number): Run | undefined {
    return this.byKey.get(key);
  }

  /** What the page itself changed, before the server says so. */
  patch(key: number, change: Partial<Run>): void {
    const run = this.byKey.get(key);
    if (run) this.byKey.set(key, { ...run, ...change });
  }
}

function rows(answer: Answer): Run[] {
  const names = Object.keys(answer.columns);
  const count = answer.columns.key?.length ?? 0;
  const config = Object.entries(answer.config);
  const summary = Object.entries(answer.summary);
  const best = Object.entries(answer.best);
  const made = new Array<Run>(count);
  for (let place = 0; place < count; place++) {
    const run: Record<string, unknown> = {};
    for (const name of names) run[name] = answer.columns[name]![place];
    run.config = pick(config, place);
    run.summary = pick(summary, place);
    run.best = pick(best, place);
    made[place] = run as unknown as Run;
  }
  return made;
}

function pick(columns: [string, unknown[]][], place: number): Record<string, unknown> {
  const picked: Record<string, unknown> = {};
  for (const [name, values] of columns) {
    const value = values[place];
    if (value !== null && value !== undefined) picked[name] = value;
  }
  return picked;
}

export function runtimeOf(run: Run): number | null {
  const begin = run.started_at ?? run.created_at;
  const end = run.ended_at ?? (isAlive(run) ? Date.now() / 1000 : run.heartbeat_at);
  return end === null ? null : Math.max(0, end - begin);
}

export function isAlive(run: { state: string }): boolean {
  return run.state === "running" || run.state === "preempting";
}
