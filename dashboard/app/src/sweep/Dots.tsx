// Trials as dots between two axes, with a third value as their colour.

import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { shade } from "../colours";
import { useObserved } from "../observe";
import { theme } from "../theme";
import { colourNamed, usePainted, useSize } from "./canvas";
import { pointed } from "./chosen";
import { isEarly, type SweepData, type Trial } from "./data";
import { ranked, type Scale } from "./scales";

interface Props {
  label: string;
  data: SweepData;
  x: Scale;
  y: Scale;
  colour: Scale | null;
  chosen: Set<number> | null;
  /** A line through places, as steps: the best so far, or the front. */
  steps?: { x: number; y: number }[];
  marked?: Set<number>;
  onOpen: (trial: Trial) => void;
  note?: ComponentChildren;
}

const ROOM = { left: 58, right: 14, top: 12, bottom: 38 };
const REACH = 12;

export function Dots({ label, data, x, y, colour, chosen, steps, marked, onOpen, note }: Props) {
  const [box, size] = useSize<HTMLDivElement>();
  const colours = useObserved(theme);
  const at = useObserved(pointed);
  const inner = { width: size.width - ROOM.left - ROOM.right, height: size.height - ROOM.top - ROOM.bottom };
  const toX = (place: number) => ROOM.left + place * inner.width;
  const toY = (place: number) => ROOM.top + (1 - place) * inner.height;
  const dots = useMemo(() => {
    const good = colour ? ranked(data, colour) : () => null;
    return data.rows
      .map((trial) => ({ trial, px: x.place(trial), py: y.place(trial), good: good(trial) }))
      .filter((dot): dot is { trial: Trial; px: number; py: number; good: number | null } => dot.px !== null && dot.py !== null);
  }, [data, x, y, colour]);

  const canvas = usePainted(
    size,
    (ctx) => {
      paintAxes(ctx, x, y, toX, toY, inner);
      if (steps?.length) paintSteps(ctx, steps, toX, toY);
      const radius = dots.length > 500 ? 2.6 : dots.length > 100 ? 3.4 : 4.2;
      for (const dot of dots) {
        const isOut = chosen !== null && !chosen.has(dot.trial.number);
        ctx.globalAlpha = isOut ? 0.18 : 0.85;
        ctx.fillStyle = dot.good === null ? colourNamed("--faint") : shade(dot.good, colours);
        ctx.strokeStyle = ctx.fillStyle;
        ctx.beginPath();
        ctx.arc(toX(dot.px), toY(dot.py), radius, 0, 7);
        // What was stopped early is a ring: its value is not its last.
        if (isEarly(dot.trial)) {
          ctx.lineWidth = 1.4;
          ctx.stroke();
        } else ctx.fill();
        if (marked?.has(dot.trial.number)) {
          ctx.globalAlpha = 1;
          ctx.strokeStyle = colourNamed("--text");
          ctx.lineWidth = 1.5;
          ctx.beginPath();
          ctx.arc(toX(dot.px), toY(dot.py), radius + 3, 0, 7);
          ctx.stroke();
        }
      }
      ctx.globalAlpha = 1;
      const under = dots.find((dot) => dot.trial.number === at);
      if (under) {
        ctx.strokeStyle = colourNamed("--text");
        ctx.lineWidth = 2;
        ctx.beginPath();
        ctx.arc(toX(under.px), toY(under.py), 7, 0, 7);
        ctx.stroke();
      }
    },
    [dots, steps, marked, chosen, colours, at],
  );

  const find = (event: PointerEvent | MouseEvent) => {
    const rect = canvas.current!.getBoundingClientRect();
    const [px, py] = [event.clientX - rect.left, event.clientY - rect.top];
    let nearest: Trial | null = null;
    let least = REACH;
    for (const dot of dots) {
      const distance = Math.hypot(toX(dot.px) - px, toY(dot.py) - py);
      if (distance < least) [nearest, least] = [dot.trial, distance];
    }
    return nearest;
  };
  const under = dots.find((dot) => dot.trial.number === at);
  return (
    <div class="dots" ref={box}>
      <canvas
        ref={canvas}
        style={{ width: `${size.width}px`, height: `${size.height}px`, cursor: under ? "pointer" : "default" }}
        role="img"
        aria-label={`${label}: ${dots.length} trials, ${y.label} over ${x.label}`}
        onPointerMove={(event) => pointed.set(find(event)?.number ?? null)}
        onPointerLeave={() => pointed.set(null)}
        onClick={(event) => {
          const trial = find(event);
          if (trial) onOpen(trial);
        }}
      />
      {under && (
        <div class="tip" style={toX(under.px) > size.width / 2 ? { right: `${size.width - toX(under.px) + 12}px`, top: "4px" } : { left: `${toX(under.px) + 12}px`, top: "4px" }}>
          <div class="tip-x">{under.trial.name}</div>
          {[x, y, ...(colour && colour.name !== x.name && colour.name !== y.name ? [colour] : [])].map((scale) => (
            <div class="tip-row" key={scale.name}>
              <span class="words">{scale.label}</span>
              <span class="value">{scale.said(under.trial)}</span>
            </div>
          ))}
          {isEarly(under.trial) && <div class="faint">stopped early</div>}
        </div>
      )}
      {dots.length === 0 && <div class="dots-empty">{note ?? "no trial has both values yet"}</div>}
    </div>
  );
}

type ToPixel = (place: number) => number;

function paintAxes(ctx: CanvasRenderingContext2D, x: Scale, y: Scale, toX: ToPixel, toY: ToPixel, inner: { width: number; height: number }): void {
  ctx.font = "11px system-ui, sans-serif";
  ctx.lineWidth = 1;
  ctx.strokeStyle = colourNamed("--line");
  const faint = colourNamed("--faint");
  ctx.fillStyle = faint;
  ctx.textBaseline = "middle";
  ctx.textAlign = "right";
  for (const tick of y.ticks) {
    const at = Math.round(toY(tick.place)) + 0.5;
    ctx.beginPath();
    ctx.moveTo(ROOM.left, at);
    ctx.lineTo(ROOM.left + inner.width, at);
    ctx.stroke();
    ctx.fillText(tick.text, ROOM.left - 6, at);
  }
  ctx.textAlign = "center";
  ctx.textBaseline = "top";
  let free = -Infinity;
  for (const tick of x.ticks) {
    const at = Math.round(toX(tick.place)) + 0.5;
    ctx.beginPath();
    ctx.moveTo(at, ROOM.top);
    ctx.lineTo(at, ROOM.top + inner.height);
    ctx.stroke();
    const half = ctx.measureText(tick.text).width / 2;
    if (at - half < free) continue;
    free = at + half + 6;
    ctx.fillText(tick.text, Math.min(at, ROOM.left + inner.width + ROOM.right - half - 1), ROOM.top + inner.height + 6);
  }
  ctx.fillStyle = colourNamed("--soft");
  ctx.fillText(x.label, ROOM.left + inner.width / 2, ROOM.top + inner.height + 22);
  ctx.save();
  ctx.translate(10, ROOM.top + inner.height / 2);
  ctx.rotate(-Math.PI / 2);
  ctx.textBaseline = "middle";
  ctx.fillText(y.label, 0, 0);
  ctx.restore();
}

function paintSteps(ctx: CanvasRenderingContext2D, steps: { x: number; y: number }[], toX: ToPixel, toY: ToPixel): void {
  ctx.strokeStyle = colourNamed("--accent");
  ctx.lineWidth = 2;
  ctx.beginPath();
  steps.forEach((step, place) => {
    if (place === 0) ctx.moveTo(toX(step.x), toY(step.y));
    else {
      ctx.lineTo(toX(step.x), toY(steps[place - 1]!.y));
      ctx.lineTo(toX(step.x), toY(step.y));
    }
  });
  ctx.stroke();
}
