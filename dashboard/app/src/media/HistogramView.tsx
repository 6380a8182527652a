// Distributions that a run logged (gradients, parameters): one of them, and all of them over the steps.

import { useEffect, useRef } from "preact/hooks";
import { formatNumber } from "../format";
import type { Logged } from "./values";

export function Histogram({ values, bins }: { values: number[]; bins: number[] }) {
  const most = Math.max(1, ...values);
  return (
    <div class="histogram">
      <svg viewBox={`0 0 ${values.length} 100`} preserveAspectRatio="none" role="img" aria-label={`Histogram from ${formatNumber(bins[0])} to ${formatNumber(bins.at(-1))}`}>
        {values.map((count, place) => (
          <rect x={place + 0.05} width={0.9} y={100 - (100 * count) / most} height={(100 * count) / most}>
            <title>{`${formatNumber(bins[place])} to ${formatNumber(bins[place + 1])}: ${count}`}</title>
          </rect>
        ))}
      </svg>
      <div class="row faint">
        <span>{formatNumber(bins[0])}</span>
        <span class="right">{formatNumber(bins.at(-1))}</span>
      </div>
    </div>
  );
}

// A wider picture than this shows nothing more.
const MOST_COLUMNS = 400;
const ROWS = 64;

/** A column for each step, from the smallest value at the bottom to the largest at the top, shaded by how
 * many values of that step are there. */
export function HistogramsOverSteps({ name, logged, place, choose }: { name: string; logged: Logged[]; place: number; choose: (place: number) => void }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const stride = Math.ceil(logged.length / MOST_COLUMNS);
  const columns = logged.filter((_, turn) => turn % stride === 0).map((row) => row.value);
  const edges = columns.flatMap(({ bins }) => (bins?.length ? [bins[0]!, bins.at(-1)!] : []));
  const [low, high] = [Math.min(...edges), Math.max(...edges)];
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context) return;
    context.clearRect(0, 0, columns.length, ROWS);
    context.fillStyle = getComputedStyle(canvas.current!).color;
    const row = (value: number) => ROWS * (1 - (value - low) / (high - low || 1));
    columns.forEach(({ values = [], bins = [] }, column) => {
      const most = Math.max(1, ...values);
      values.forEach((count, bin) => {
        context.globalAlpha = count / most;
        const top = row(bins[bin + 1]!);
        context.fillRect(column, top, 1, Math.max(1, row(bins[bin]!) - top));
      });
    });
  }, [logged]);
  return (
    <figure class="over-steps">
      <canvas
        ref={canvas}
        width={columns.length}
        height={ROWS}
        role="img"
        aria-label={`${name} over the steps, from ${formatNumber(low)} to ${formatNumber(high)}`}
        onClick={(event) => {
          const box = event.currentTarget.getBoundingClientRect();
          choose(Math.min(logged.length - 1, stride * Math.floor(((event.clientX - box.left) / box.width) * columns.length)));
        }}
      />
      <div class="row faint">
        <span>step {logged[0]!.step.toLocaleString("en")}</span>
        <span class="right">
          step {logged.at(-1)!.step.toLocaleString("en")}, {formatNumber(low)} to {formatNumber(high)}
        </span>
      </div>
      <span class="over-steps-mark" style={{ left: `${(100 * (place + 0.5)) / logged.length}%` }} />
    </figure>
  );
}
