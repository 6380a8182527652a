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
  private isDue = false;
  private readonly underWay = new Set<string>();

  constructor(readonly setting: Setting) {}

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

  /** Whether everything that was wanted of a metric has been answered. */
  isReady(metric: string): boolean {
    const runs = this.wanted.get(metric) ?? [];
    const kept = this.kept.get(metric);
    return runs.every((run) => kept?.has(run));
  }

  /** These runs have new points. */
  grown(runs: readonly number[]): void {
    for (const kept of this.kept.values()) {
      for (const run of runs) {
        const one = kept.get(run);
        if (one) one.old = true;
      }
    }
    this.schedule();
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
      if (this.underWay.has(metric)) continue;
      const kept = this.kept.get(metric);
      const missing = runs.filter((run) => kept?.get(run)?.old ?? true);
      if (!missing.length) continue;
      const name = missing.join();
      const question = questions.get(name) ?? { runs: missing, metrics: [] };
      question.metrics.push(metric);
      questions.set(name, question);
    }
    for (const question of questions.values()) void this.ask(question.runs, question.metrics);
  }

  private async ask(runs: number[], metrics: string[]): Promise<void> {
    metrics.forEach((metric) => this.underWay.add(metric));
    try {
      const found = await fetchCurves(this.setting, metrics, { runs });
      for (const metric of metrics) {
        const kept = this.kept.get(metric) ?? new Map<number, Kept>();
        this.kept.set(metric, kept);
        for (const run of runs) kept.set(run, { curve: null, old: false });
      }
      for (const curve of found) this.kept.get(curve.metric)!.set(curve.run!, { curve, old: false });
    } catch {
      return; // Told by the bar at the top; the next news asks again.
    } finally {
      metrics.forEach((metric) => this.underWay.delete(metric));
    }
    for (const metric of metrics) this.listeners.get(metric)?.forEach((listener) => listener());
    this.schedule();
  }
}
