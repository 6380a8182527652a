// Parallel coordinates: a line a trial through all parameters to its metric. Drag along an axis to
// choose trials; click on it to let them go.

import { useMemo, useRef, useState } from "preact/hooks";
import { shade, faded } from "../colours";
import { useObserved } from "../observe";
import { theme } from "../theme";
import { useSize, usePainted, colourNamed, type Size } from "./canvas";
import { pointed, type Brushes } from "./chosen";
import type { SweepData, Trial } from "./data";
import { metricScale, parameterScale, ranked, type Scale } from "./scales";

interface Props {
  data: SweepData;
  metric: string | null;
  brushes: Brushes;
  onBrush: (next: Brushes) => void;
  chosen: Set<number> | null;
  onOpen: (trial: Trial) => void;
}

const TOP = 44;
const BOTTOM = 14;
const SIDE = 56;
const GRIP = 16;
const NARROWEST = 92;
const REACH = 9;

interface Drawn {
  trial: Trial;
  /** Pixels from the top at each axis; NaN where the trial has no value. */
  y: Float32Array;
  good: number | null;
}

export function Parallel({ data, metric, brushes, onBrush, chosen, onOpen }: Props) {
  const [box, outer] = useSize<HTMLDivElement>();
  const colours = useObserved(theme);
  const [drag, setDrag] = useState<{ name: string; from: number; to: number } | null>(null);
  const at = useObserved(pointed);
  const scales = useMemo(() => scalesOf(data, metric), [data, metric]);
  const size: Size = { width: Math.max(outer.width, scales.length * NARROWEST + SIDE), height: outer.height };
  const xs = scales.map((_, place) => (scales.length < 2 ? size.width / 2 : SIDE + (place * (size.width - 2 * SIDE)) / (scales.length - 1)));
  const inner = Math.max(0, size.height - TOP - BOTTOM);
  const yOf = (place: number) => TOP + (1 - place) * inner;

  const drawn = useMemo(() => {
    const last = metric ? ranked(data, metricScale(data, metric)) : () => null;
    const drawn = data.rows.map((trial): Drawn => ({ trial, y: Float32Array.from(scales, (scale) => yOf(scale.place(trial) ?? NaN)), good: last(trial) }));
    // The best on top.
    return drawn.sort((a, b) => (a.good ?? -1) - (b.good ?? -1));
  }, [data, scales, metric, inner]);

  const base = usePainted(
    size,
    (ctx) => {
      const grey = colourNamed("--line-strong");
      const width = drawn.length > 400 ? 1 : 1.4;
      for (const curve of drawn) if (chosen && !chosen.has(curve.trial.number)) trace(ctx, curve, xs, faded2(grey, colours === "dark" ? 0.45 : 0.5), width);
      for (const curve of drawn) {
        if (chosen && !chosen.has(curve.trial.number)) continue;
        const colour = curve.good === null ? colourNamed("--faint") : shade(curve.good, colours);
        trace(ctx, curve, xs, faded(colour, drawn.length > 400 ? 0.5 : 0.78), width, curve.good === null);
      }
    },
    [drawn, chosen, colours, xs.join()],
  );
  const over = usePainted(
    size,
    (ctx) => {
      const curve = drawn.find((each) => each.trial.number === at);
      if (!curve) return;
      trace(ctx, curve, xs, colourNamed("--surface"), 6);
      trace(ctx, curve, xs, colourNamed("--text"), 2.4);
    },
    [drawn, at, xs.join()],
  );

  const svg = useRef<SVGSVGElement>(null);
  const place = (event: PointerEvent): [number, number] => {
    const rect = svg.current!.getBoundingClientRect();
    return [event.clientX - rect.left, event.clientY - rect.top];
  };
  const along = (y: number) => Math.min(1, Math.max(0, 1 - (y - TOP) / inner));

  const onMove = (event: PointerEvent) => {
    const [x, y] = place(event);
    if (drag) return setDrag({ ...drag, to: along(y) });
    pointed.set(nearest(drawn, xs, x, y, chosen)?.trial.number ?? null);
  };
  const onDown = (event: PointerEvent) => {
    const [x, y] = place(event);
    const axis = xs.findIndex((axisX) => Math.abs(axisX - x) < GRIP);
    if (axis < 0 || y < TOP - 8) return;
    svg.current!.setPointerCapture(event.pointerId);
    setDrag({ name: scales[axis]!.name, from: along(y), to: along(y) });
  };
  const onUp = () => {
    if (!drag) {
      const trial = data.rows.find((trial) => trial.number === at);
      if (trial) onOpen(trial);
      return;
    }
    const { [drag.name]: _, ...others } = brushes;
    const [low, high] = [Math.min(drag.from, drag.to), Math.max(drag.from, drag.to)];
    onBrush(high - low < 0.01 ? others : { ...others, [drag.name]: [low, high] });
    setDrag(null);
  };

  const shown: Brushes = drag ? { ...brushes, [drag.name]: [Math.min(drag.from, drag.to), Math.max(drag.from, drag.to)] } : brushes;
  const words = data.rows.find((trial) => trial.number === at);
  return (
    <div class="parallel-scroll" tabIndex={0} role="region" aria-label="Parallel coordinates, to be scrolled">
      <div class="parallel" ref={box} style={{ minWidth: `${scales.length * NARROWEST + SIDE}px` }}>
        <canvas ref={base} style={{ width: `${size.width}px`, height: `${size.height}px` }} role="img" aria-label={`Parallel coordinates of ${data.rows.length} trials over ${scales.map((scale) => scale.label).join(", ")}; the table below has the same values`} />
        <canvas ref={over} style={{ width: `${size.width}px`, height: `${size.height}px` }} aria-hidden="true" />
        <svg ref={svg} width={size.width} height={Math.max(size.height, TOP + BOTTOM)} aria-hidden="true" onPointerMove={onMove} onPointerDown={onDown} onPointerUp={onUp} onPointerLeave={() => !drag && pointed.set(null)}>
          {scales.map((scale, axis) => (
            <Axis key={scale.name} scale={scale} x={xs[axis]!} y={yOf} brush={shown[scale.name]} last={axis === scales.length - 1 && scale.better !== undefined} room={scales.length > 1 ? xs[1]! - xs[0]! : size.width} />
          ))}
        </svg>
        {words && !drag && <div class="parallel-word">{`${words.name}${metric && words.measured[metric] != null ? ` · ${metric} ${metricScale(data, metric).said(words)}` : ` · ${words.state}`}`}</div>}
      </div>
    </div>
  );
}

function scalesOf(data: SweepData, metric: string | null): Scale[] {
  const scales = data.parameters.map((parameter) => parameterScale(data, parameter.name)!);
  return metric ? [...scales, metricScale(data, metric)] : scales;
}

function faded2(colour: string, alpha: number): string {
  return `color-mix(in srgb, ${colour} ${Math.round(alpha * 100)}%, transparent)`;
}

function trace(ctx: CanvasRenderingContext2D, curve: Drawn, xs: readonly number[], colour: string, width: number, dashed = false): void {
  ctx.beginPath();
  ctx.strokeStyle = colour;
  ctx.lineWidth = width;
  ctx.setLineDash(dashed ? [4, 4] : []);
  let before = -1;
  for (let axis = 0; axis < xs.length; axis++) {
    const y = curve.y[axis]!;
    if (Number.isNaN(y)) {
      before = -1;
      continue;
    }
    if (before < 0) ctx.moveTo(xs[axis]!, y);
    else {
      const bend = (xs[axis]! - xs[before]!) * 0.35;
      ctx.bezierCurveTo(xs[before]! + bend, curve.y[before]!, xs[axis]! - bend, y, xs[axis]!, y);
    }
    before = axis;
  }
  ctx.stroke();
}

function nearest(drawn: readonly Drawn[], xs: readonly number[], x: number, y: number, chosen: Set<number> | null): Drawn | null {
  const right = xs.findIndex((axisX) => axisX >= x);
  if (right < 0 || xs.length < 2) return null;
  const left = Math.max(0, right - 1);
  const next = left === right ? right + 1 : right;
  const share = (x - xs[left]!) / (xs[next]! - xs[left]! || 1);
  // The curve's own bend, near enough.
  const eased = share * share * (3 - 2 * share);
  let best: Drawn | null = null;
  let least = REACH;
  for (const curve of drawn) {
    if (chosen && !chosen.has(curve.trial.number)) continue;
    const distance = Math.abs(curve.y[left]! + eased * (curve.y[next]! - curve.y[left]!) - y);
    if (distance <= least) [best, least] = [curve, distance];
  }
  return best;
}

function Axis(props: { scale: Scale; x: number; y: (place: number) => number; brush: [number, number] | undefined; last: boolean; room: number }) {
  const { scale, x, y, brush, last } = props;
  const most = Math.max(8, Math.floor(props.room / 6.4));
  const label = scale.label.length > most ? `${scale.label.slice(0, most - 1)}…` : scale.label;
  return (
    <g class={`axis${brush ? " brushed" : ""}`}>
      <title>{`${scale.label}: drag along the axis to choose`}</title>
      <rect x={x - GRIP} y={y(1)} width={2 * GRIP} height={y(0) - y(1)} class="axis-grip" />
      <line x1={x} x2={x} y1={y(1)} y2={y(0)} />
      <text x={x} y={16} text-anchor="middle" class="axis-name">
        {label}
      </text>
      {scale.better && (
        <text x={x} y={30} text-anchor="middle" class="axis-note">
          {scale.better === "low" ? "lower is better" : "higher is better"}
        </text>
      )}
      {scale.ticks.map((tick) => (
        <text key={tick.place} x={last ? x + 8 : x - 8} y={y(tick.place) + 4} text-anchor={last ? "start" : "end"} class="axis-tick">
          {tick.text}
        </text>
      ))}
      {brush && <rect x={x - 7} width={14} y={y(brush[1])} height={Math.max(2, y(brush[0]) - y(brush[1]))} rx={3} class="brush" />}
    </g>
  );
}
