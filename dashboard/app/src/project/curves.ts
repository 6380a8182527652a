// Curves of many runs and metrics, kept as they came. Charts say what they want; what is missing is
// asked for together, and what has grown is asked for again.

import { postForBytes } from "../api";

export interface Curve {
  x: Float64Array;
  y: Float32Array;
  low: Float32Array | null;
  high: Float32Array | null;
  /** Of groups: how far the runs lie apart, and how many there are at each x. */
  deviation: Float32Array | null;
  runs: Float32Array | null;
  /** How many values it stands for. */
  count: number;
}

/** The one notion of what a chart has to show. */
export type ChartState = "loading" | "failed" | "absent" | "shown";

// A question that was not answered is asked again.
export const AGAIN_AFTER = 3_000;
// More curves come in parts: the first charts are drawn while the server reads the next ones.
const MOST_CURVES = 300;
// The server reads the second question while the page draws the answer to the first.
const MOST_QUESTIONS = 2;

export interface Setting {
  project: string;
  stream: "history" | "events";
  x: string | null;
  points: number;
  range: [number, number] | null;
}

interface Entry {
  metric: string;
  run?: number;
  group?: number;
  count: number;
  points: number;
  x: number;
  last: number;
  low: number | null;
  high: number | null;
  deviation?: number | null;
  runs?: number | null;
}

/** The binary answer: a head in JSON, and the columns behind it, used where they lie. */
function unpack(buffer: ArrayBuffer): (Curve & { metric: string; run?: number; group?: number })[] {
  const length = new DataView(buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length))) as { curves: Entry[] };
  const start = 4 + length + ((8 - ((4 + length) % 8)) % 8);
  const narrow = (place: number | null | undefined, count: number) =>
    place === null || place === undefined ? null : new Float32Array(buffer, start + place, count);
  return head.curves.map((entry) => ({
    metric: entry.metric,
    run: entry.run,
    group: entry.group,
    count: entry.count,
    x: new Float64Array(buffer, start + entry.x, entry.points),
    y: narrow(entry.last, entry.points)!,
    low: narrow(entry.low, entry.points),
    high: narrow(entry.high, entry.points),
    deviation: narrow(entry.deviation, entry.points),
    runs: narrow(entry.runs, entry.points),
  }));
}

type Wanted = { runs: readonly number[] } | { groups: readonly (readonly number[])[] };

export async function fetchCurves(setting: Setting, metrics: readonly string[], wanted: Wanted) {
  return unpack(await postForBytes("api/curves", { ...setting, metrics, ...wanted }));
}

interface Kept {
  curve: Curve | null;
  /** Has grown since. */
  old: boolean;
}

/** Curves of runs under one setting. */
export class CurveStore {
  private readonly kept = new Map<string, Map<number, Kept>>();
  private readonly wanted = new Map<string, readonly number[]>();
  private readonly listeners = new Map<string, Set<() => void>>();
  /** Metrics whose last question was not answered, and those that are not asked for again yet. */
  private readonly failed = new Set<string>();
  private readonly resting = new Set<string>();
  private readonly others = new Map<string, CurveStore>();
  private isDue = false;
  private questions = 0;
  private readonly underWay = new Set<string>();

  constructor(readonly setting: Setting) {}

  /** The same over another axis, for a metric that has one of its own. */
  over(x: string | null): CurveStore {
    if (x === this.setting.x) return this;
    const name = x ?? "";
    const store = this.others.get(name) ?? new CurveStore({ ...this.setting, x });
    this.others.set(name, store);
    return store;
  }

  /** A chart is shown: keep this metric of these runs fresh. */
  want(metric: string, runs: readonly number[]): void {
    this.wanted.set(metric, runs);
    this.schedule();
  }

  leave(metric: string): void {
    this.wanted.delete(metric);
  }

  listen(metric: string, listener: () => void): () => void {
    const set = this.listeners.get(metric) ?? new Set();
    this.listeners.set(metric, set.add(listener));
    return () => set.delete(listener);
  }

  find(metric: string, run: number): Curve | null {
    return this.kept.get(metric)?.get(run)?.curve ?? null;
  }

  /** What there is of a metric of these runs. */
  state(metric: string, runs: readonly { key: number }[]): ChartState {
    const byRun = this.kept.get(metric);
    if (runs.some(({ key }) => byRun?.get(key)?.curve)) return "shown";
    if (runs.every(({ key }) => byRun?.has(key))) return "absent";
    return this.failed.has(metric) ? "failed" : "loading";
  }

  /** These runs have new points. */
  grown(runs: readonly number[]): void {
    for (const byRun of this.kept.values()) {
      for (const run of runs) {
        const entry = byRun.get(run);
        if (entry) entry.old = true;
      }
    }
    this.schedule();
    this.others.forEach((store) => store.grown(runs));
  }

  private tell(metrics: readonly string[]): void {
    for (const metric of metrics) this.listeners.get(metric)?.forEach((listener) => listener());
  }

  private schedule(): void {
    if (this.isDue) return;
    this.isDue = true;
    // After this round of rendering: all charts have said what they want.
    setTimeout(() => {
      this.isDue = false;
      this.fetch();
    }, 0);
  }

  private fetch(): void {
    // Metrics that miss the same runs are one question.
    const questions = new Map<string, { runs: number[]; metrics: string[] }>();
    for (const [metric, runs] of this.wanted) {
      if (this.underWay.has(metric) || this.resting.has(metric)) continue;
      const byRun = this.kept.get(metric);
      const missing = runs.filter((run) => byRun?.get(run)?.old ?? true);
      if (!missing.length) continue;
      const name = missing.join();
      const question = questions.get(name) ?? { runs: missing, metrics: [] };
      question.metrics.push(metric);
      questions.set(name, question);
    }
    for (const { runs, metrics } of questions.values()) {
      // As they stand on the page, from top to bottom.
      metrics.sort();
      const few = Math.max(1, Math.floor(MOST_CURVES / runs.length));
      for (let place = 0; place < metrics.length && this.questions < MOST_QUESTIONS; place += few) {
        void this.ask(runs, metrics.slice(place, place + few));
      }
    }
  }

  private async ask(runs: number[], metrics: string[]): Promise<void> {
    this.questions += 1;
    metrics.forEach((metric) => this.underWay.add(metric));
    try {
      const curves = await fetchCurves(this.setting, metrics, { runs });
      for (const metric of metrics) {
        const byRun = this.kept.get(metric) ?? new Map<number, Kept>();
        this.kept.set(metric, byRun);
        for (const run of runs) byRun.set(run, { curve: null, old: false });
      }
      for (const curve of curves) this.kept.get(curve.metric)!.set(curve.run!, { curve, old: false });
      metrics.forEach((metric) => this.failed.delete(metric));
    } catch {
      metrics.forEach((metric) => this.failed.add(metric) && this.resting.add(metric));
      setTimeout(() => {
        metrics.forEach((metric) => this.resting.delete(metric));
        this.schedule();
      }, AGAIN_AFTER);
    } finally {
      this.questions -= 1;
      metrics.forEach((metric) => this.underWay.delete(metric));
    }
    // The next question first: charts are drawn meanwhile.
    this.fetch();
    this.tell(metrics);
  }
}
