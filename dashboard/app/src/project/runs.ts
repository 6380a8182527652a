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
}

export interface Wanted {
  config: readonly string[];
  summary: readonly string[];
}

export class RunList {
  revision = 0;
  private byKey = new Map<number, Run>();

  constructor(private readonly path: string) {}

  get runs(): Run[] {
    return [...this.byKey.values()];
  }

  /** Everything anew, with these columns. */
  async load(wanted: Wanted): Promise<void> {
    const answer = await get<Answer>(`${this.path}/runs`, { query: { config: [...wanted.config], summary: [...wanted.summary] } });
    this.byKey = new Map(rows(answer).map((run) => [run.key, run]));
    this.revision = answer.revision;
  }

  /** What changed since; answers whether anything did. */
  async update(wanted: Wanted): Promise<boolean> {
    const answer = await get<Answer>(`${this.path}/runs`, {
      query: { config: [...wanted.config], summary: [...wanted.summary], since: this.revision },
    });
    const changed = rows(answer);
    if (answer.whole) this.byKey = new Map();
    // New runs come first, as in the whole list.
    const fresh = changed.filter((run) => !this.byKey.has(run.key));
    for (const run of changed) if (this.byKey.has(run.key)) this.byKey.set(run.key, run);
    if (fresh.length) this.byKey = new Map([...fresh.map((run) => [run.key, run] as const), ...this.byKey]);
    answer.deleted.forEach((key) => this.byKey.delete(key));
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
  const made = new Array<Run>(count);
  for (let place = 0; place < count; place++) {
    const run: Record<string, unknown> = {};
    for (const name of names) run[name] = answer.columns[name]![place];
    run.config = pick(config, place);
    run.summary = pick(summary, place);
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
