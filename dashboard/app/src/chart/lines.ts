// The lines of a chart as numbers: smoothing, ranges, and which one is near.

export interface Line {
  /** A run's key, or the name of a group: what is hovered here is hovered everywhere. */
  key: number | string;
  label: string;
  colour: string;
  x: Float64Array;
  y: Float32Array;
  /** What a point stands for, where it stands for several. */
  low?: Float32Array | null;
  high?: Float32Array | null;
  /** Whether low and high belong to a group of runs, which is then drawn more strongly. */
  group?: boolean;
}

export type Span = [number, number];

// Values so many times further apart than those of the middle point stand out.
const SPIKE = 4;

const smoothed = new WeakMap<Float32Array, Map<number, Float32Array>>();

/** An exponential mean that does not lean towards the first value; gaps stay gaps. */
export function smooth(values: Float32Array, weight: number): Float32Array {
  if (weight <= 0) return values;
  let known = smoothed.get(values);
  if (!known) smoothed.set(values, (known = new Map()));
  const done = known.get(weight);
  if (done) return done;
  const result = new Float32Array(values.length);
  let mean = 0;
  let share = 0;
  for (let place = 0; place < values.length; place++) {
    const value = values[place]!;
    if (!Number.isFinite(value)) {
      result[place] = value;
      continue;
    }
    mean = weight * mean + (1 - weight) * value;
    share = weight * share + (1 - weight);
    result[place] = mean / share;
  }
  known.clear(); // While a slider moves, each place is asked for once.
  known.set(weight, result);
  return result;
}

/** The first place whose x is not below `value`. */
export function placeOf(x: Float64Array, value: number): number {
  let low = 0;
  let high = x.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (x[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

function nearestPlace(x: Float64Array, value: number): number {
  const place = placeOf(x, value);
  if (place <= 0) return 0;
  if (place >= x.length) return x.length - 1;
  return value - x[place - 1]! <= x[place]! - value ? place - 1 : place;
}

/** From the smallest to the largest x, of positive ones where the axis is logarithmic. */
export function spanOfX(lines: readonly Line[], log: boolean): Span | null {
  let low = Infinity;
  let high = -Infinity;
  for (const { x } of lines) {
    if (!x.length) continue;
    let first = 0;
    if (log) while (first < x.length && !(x[first]! > 0)) first++;
    if (first >= x.length) continue;
    if (x[first]! < low) low = x[first]!;
    if (x[x.length - 1]! > high) high = x[x.length - 1]!;
  }
  return low <= high ? [low, high] : null;
}

/** From the smallest to the largest value that is drawn between two x. */
export function spanOfY(lines: readonly Line[], within: Span, weight: number, bands: boolean, log: boolean): Span | null {
  let low = Infinity;
  let high = -Infinity;
  const least = log ? 0 : -Infinity;
  for (const line of lines) {
    const y = smooth(line.y, weight);
    const first = Math.max(0, placeOf(line.x, within[0]) - 1);
    const last = Math.min(y.length - 1, placeOf(line.x, within[1]));
    const useBand = (bands && weight <= 0) || line.group;
    const bottom = useBand && line.low ? line.low : y;
    const top = useBand && line.high ? line.high : y;
    for (let place = first; place <= last; place++) {
      const small = bottom[place]!;
      const large = top[place]!;
      if (small < low && small > least && small > -Infinity) low = small;
      if (large > high && large < Infinity) high = large;
    }
  }
  return low <= high ? [low, high] : null;
}

/** As the table has them: of runs, the first lies on top, so it is drawn last. */
export function inOrder(lines: readonly Line[]): Line[] {
  return lines.some((line) => line.group) ? [...lines] : [...lines].reverse();
}

const outliers = new WeakMap<Line, number[]>();

/** The places where a point stands for values that are much further apart than elsewhere: spikes. */
export function spikes(line: Line): number[] {
  const { low, high } = line;
  if (!low || !high || line.group) return [];
  let places = outliers.get(line);
  if (!places) {
    const extents = high.map((value, place) => value - low[place]!);
    const usual = extents.filter(Number.isFinite).sort();
    const most = SPIKE * (usual[usual.length >> 1] ?? 0);
    places = [];
    for (let place = 0; place < extents.length; place++) if (extents[place]! > most) places.push(place);
    // Half of the line cannot stand out from it: most points stand for one value each.
    if (places.length > extents.length / 8) places = [];
    outliers.set(line, places);
  }
  return places;
}

export interface Near {
  line: Line;
  x: number;
  y: number;
  place: number;
  distance: number;
}

/** What the lines show at an x, the nearest to the pointer first. */
export function near(lines: readonly Line[], x: number, y: number, toPixel: (value: number) => number, weight: number): Near[] {
  const near: Near[] = [];
  for (const line of lines) {
    if (!line.x.length) continue;
    const place = nearestPlace(line.x, x);
    const value = smooth(line.y, weight)[place]!;
    if (!Number.isFinite(value)) continue;
    near.push({ line, place, x: line.x[place]!, y: value, distance: Math.abs(toPixel(value) - y) });
  }
  return near.sort((a, b) => a.distance - b.distance);
}
