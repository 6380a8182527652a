// What can be put on an axis: parameters, metrics, and what trials have beside them. Every axis runs
// from 0 to 1, whatever stands along it.

import { placeOf } from "../chart/lines";
import { mark } from "../chart/plot";
import { formatDuration, formatValue } from "../format";
import type { SweepData, Trial } from "./data";

export interface Tick {
  place: number;
  text: string;
}

export interface Scale {
  name: string;
  label: string;
  ticks: Tick[];
  place: (trial: Trial) => number | null;
  /** What the trial has there, for people. */
  said: (trial: Trial) => string;
  /** "low" or "high" where one end is the better one. */
  better?: "low" | "high";
  /** Where a value of this scale would stand. */
  placeOf?: (value: number) => number;
}

const LOG_FROM = 1000;

export function parameterScale(data: SweepData, name: string): Scale | null {
  const parameter = data.parameters.find((parameter) => parameter.name === name);
  if (!parameter) return null;
  return {
    name,
    label: name,
    ticks: parameter.ticks.map((tick) => ({ place: tick.place, text: shortValue(tick.value) })),
    place: (trial) => trial.places[name] ?? null,
    said: (trial) => formatValue(trial.values[name]),
  };
}

export function metricScale(data: SweepData, name: string): Scale {
  const aim = data.metrics.find((candidate) => candidate.name === name);
  const numbers = data.rows.map((trial) => trial.measured[name]).filter((value): value is number => typeof value === "number");
  const scale = numberScale(name, numbers, (trial) => trial.measured[name] ?? null, formatValue);
  if (aim) scale.better = aim.goal === "minimize" ? "low" : "high";
  return scale;
}

/** A scale over numbers: logarithmic where they lie many sizes apart. */
function numberScale(label: string, numbers: number[], read: (trial: Trial) => number | null, say: (value: number) => string): Scale {
  let low = Infinity;
  let high = -Infinity;
  for (const value of numbers) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (!(low <= high)) [low, high] = [0, 1];
  const log = low > 0 && high / low > LOG_FROM;
  if (low === high) {
    const room = Math.abs(low) * 0.1 || 0.5;
    [low, high] = [low - room, high + room];
  }
  const into = (value: number) => (log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low));
  return {
    name: label,
    label,
    ticks: ticksBetween(low, high, log).map((value) => ({ place: into(value), text: mark(value, "number") })),
    place: (trial) => {
      const value = read(trial);
      return value === null ? null : into(value);
    },
    said: (trial) => {
      const value = read(trial);
      return value === null ? "–" : say(value);
    },
    placeOf: into,
  };
}

function ticksBetween(low: number, high: number, log: boolean): number[] {
  if (log) {
    const first = Math.ceil(Math.log10(low) - 1e-9);
    const last = Math.floor(Math.log10(high) + 1e-9);
    const step = Math.max(1, Math.ceil((last - first + 1) / 6));
    const ticks: number[] = [];
    for (let power = first; power <= last; power += step) ticks.push(10 ** power);
    return ticks;
  }
  const rough = (high - low) / 5;
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((times) => times * size).find((candidate) => candidate >= rough) ?? rough;
  const ticks: number[] = [];
  for (let value = Math.ceil(low / step - 1e-9) * step; value <= high + step * 1e-9; value += step) ticks.push(Number(value.toPrecision(12)));
  return ticks;
}

function shortValue(value: unknown): string {
  if (typeof value === "number") return mark(Number(value.toPrecision(3)), "number");
  const text = formatValue(value);
  return text.length > 16 ? `${text.slice(0, 15)}…` : text;
}

const ORDER = "order of ending";
const DURATION = "duration";

/** Every name that may stand on an axis. */
export function scaleNames(data: SweepData): string[] {
  return [...data.measuredNames, ...data.parameters.map((parameter) => parameter.name), ORDER, DURATION];
}

export function scaleOf(data: SweepData, name: string): Scale {
  if (name === ORDER) {
    const numbers = data.rows.map((trial) => trial.ended).filter((value): value is number => value !== null);
    return numberScale(ORDER, numbers, (trial) => trial.ended, formatValue);
  }
  if (name === DURATION) {
    return numberScale(DURATION, data.rows.map((trial) => trial.seconds), (trial) => trial.seconds, formatDuration);
  }
  return parameterScale(data, name) ?? metricScale(data, name);
}

export const ORDER_SCALE = ORDER;

/** From 0 (worst) to 1 (best) by rank, so that one trial far off does not give all others one colour. */
export function ranked(data: SweepData, scale: Scale): (trial: Trial) => number | null {
  const places = data.rows.map((trial) => scale.place(trial)).filter((place): place is number => place !== null);
  const order = Float64Array.from(places).sort();
  const last = Math.max(1, order.length - 1);
  return (trial) => {
    const place = scale.place(trial);
    if (place === null) return null;
    const rank = placeOf(order, place) / last;
    return scale.better === "low" ? 1 - rank : rank;
  };
}
