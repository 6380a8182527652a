// Which trials are looked at: those that lie in every brush, and the one under the pointer.

import { useMemo } from "preact/hooks";
import { Observed } from "../observe";
import { useQuery } from "../router";
import type { SweepData, Trial } from "./data";
import { scaleOf } from "./scales";

export type Brushes = Record<string, [number, number]>;

/** The number of the trial under the pointer, in whichever chart or table. */
export const pointed = new Observed<number | null>(null);

/** Brushes stand in the address: `lr~0.2~0.5!depth~0~0.3`. */
export function useBrushes(): [Brushes, (next: Brushes) => void] {
  const [text, setText] = useQuery("brush");
  const brushes = useMemo(() => {
    const brushes: Brushes = {};
    for (const part of text.split("!").filter(Boolean)) {
      const [name, low, high] = part.split("~");
      if (name && low && high) brushes[decodeURIComponent(name)] = [Number(low), Number(high)];
    }
    return brushes;
  }, [text]);
  const change = (next: Brushes) => {
    const parts = Object.entries(next).map(([name, [low, high]]) => `${encodeURIComponent(name)}~${low.toFixed(3)}~${high.toFixed(3)}`);
    setText(parts.join("!") || null);
  };
  return [brushes, change];
}

/** The trials that lie in every brush; null where there is none: all of them. */
export function brushed(data: SweepData, brushes: Brushes): Set<number> | null {
  const scales = Object.entries(brushes).map(([name, range]) => ({ scale: scaleOf(data, name), range }));
  if (!scales.length) return null;
  const inside = (trial: Trial) =>
    scales.every(({ scale, range: [low, high] }) => {
      const place = scale.place(trial);
      return place !== null && place >= low - 1e-6 && place <= high + 1e-6;
    });
  return new Set(data.rows.filter(inside).map((trial) => trial.number));
}
