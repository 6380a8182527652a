// Lines and bands on a canvas. uPlot keeps scales and axes; the lines have x values of their own
// each, so they are drawn here.

import { faded } from "../colours";
import { placeOf, smooth, spikes, type Line, type Span } from "./lines";

export interface Frame {
  left: number;
  top: number;
  width: number;
  height: number;
  x: Span;
  y: Span;
  logX: boolean;
  logY: boolean;
}

export interface Look {
  weight: number;
  bands: boolean;
  pixels: number;
}

type ToPixel = (value: number) => number;

export function scaleX(frame: Frame): ToPixel {
  return scale(frame.x, frame.logX, frame.left, frame.width);
}

export function scaleY(frame: Frame): ToPixel {
  return scale(frame.y, frame.logY, frame.top + frame.height, -frame.height);
}

function scale([low, high]: Span, log: boolean, start: number, length: number): ToPixel {
  if (!log) {
    const factor = length / (high - low);
    return (value) => start + (value - low) * factor;
  }
  const base = Math.log10(low);
  const factor = length / (Math.log10(high) - base);
  return (value) => (value > 0 ? start + (Math.log10(value) - base) * factor : NaN);
}

export function paintLines(ctx: CanvasRenderingContext2D, frame: Frame, lines: readonly Line[], look: Look): void {
  ctx.save();
  clip(ctx, frame);
  const toX = scaleX(frame);
  const toY = scaleY(frame);
  const isCrowded = lines.length > 24;
  ctx.lineJoin = isCrowded ? "bevel" : "round";
  if (look.bands) {
    for (const line of lines) {
      paintBand(ctx, frame, line, look, toX, toY);
      if (look.weight <= 0) paintSpikes(ctx, line, look, toX, toY);
    }
  }
  const width = (isCrowded ? 1 : 1.5) * look.pixels;
  for (const line of lines) {
    if (look.weight > 0 && !isCrowded && !line.group) {
      ctx.strokeStyle = faded(line.colour, 0.22);
      ctx.lineWidth = look.pixels;
      trace(ctx, frame, line.x, line.y, toX, toY);
    }
    ctx.strokeStyle = line.colour;
    ctx.lineWidth = line.group ? 2 * look.pixels : width;
    const y = smooth(line.y, look.weight);
    if (isCrowded && !line.group) traceThin(ctx, frame, line.x, y, toX, toY);
    else trace(ctx, frame, line.x, y, toX, toY);
    if (line.x.length === 1) dot(ctx, toX(line.x[0]!), toY(line.y[0]!), 3 * look.pixels, line.colour);
  }
  ctx.restore();
}

/** One line over all others, on a canvas of its own: hovering must not paint a hundred again. */
export function paintOver(ctx: CanvasRenderingContext2D, frame: Frame, line: Line, look: Look, halo: string): void {
  ctx.save();
  clip(ctx, frame);
  const toX = scaleX(frame);
  const toY = scaleY(frame);
  const y = smooth(line.y, look.weight);
  ctx.lineJoin = "round";
  for (const [colour, width] of [
    [halo, 5],
    [line.colour, 2.5],
  ] as const) {
    ctx.strokeStyle = colour;
    ctx.lineWidth = width * look.pixels;
    trace(ctx, frame, line.x, y, toX, toY);
  }
  ctx.restore();
}

function clip(ctx: CanvasRenderingContext2D, frame: Frame): void {
  ctx.beginPath();
  ctx.rect(frame.left, frame.top, frame.width, frame.height);
  ctx.clip();
}

function dot(ctx: CanvasRenderingContext2D, x: number, y: number, radius: number, colour: string): void {
  ctx.fillStyle = colour;
  ctx.beginPath();
  ctx.arc(x, y, radius, 0, 7);
  ctx.fill();
}

function seen(frame: Frame, x: Float64Array): [number, number] {
  return [Math.max(0, placeOf(x, frame.x[0]) - 1), Math.min(x.length, placeOf(x, frame.x[1]) + 2)];
}

function trace(ctx: CanvasRenderingContext2D, frame: Frame, x: Float64Array, y: Float32Array, toX: ToPixel, toY: ToPixel): void {
  const [first, last] = seen(frame, x);
  ctx.beginPath();
  // With many points to a column of pixels, only the column's extent can be seen: four strokes.
  if (last - first > 4 * frame.width) traceColumns(ctx, x, y, first, last, toX, toY);
  else {
    let isDrawing = false;
    for (let place = first; place < last; place++) {
      const at = toY(y[place]!);
      if (at - at !== 0) {
        isDrawing = false;
        continue;
      }
      if (isDrawing) ctx.lineTo(toX(x[place]!), at);
      else ctx.moveTo(toX(x[place]!), at);
      isDrawing = true;
    }
  }
  ctx.stroke();
}

/** A line no wider than a column of pixels: one upright stroke a column, from its lowest to its highest point. */
function traceThin(ctx: CanvasRenderingContext2D, frame: Frame, x: Float64Array, y: Float32Array, toX: ToPixel, toY: ToPixel): void {
  const [first, last] = seen(frame, x);
  const wide = ctx.lineWidth;
  if (last - first <= frame.width / wide) return trace(ctx, frame, x, y, toX, toY);
  ctx.beginPath();
  let column = NaN;
  let top = 0;
  let bottom = 0;
  let end = 0;
  const finish = () => {
    // As high as it is wide, or a level line would be too pale.
    const more = Math.max(0, wide - (bottom - top)) / 2;
    ctx.moveTo((column + 0.5) * wide, top - more);
    ctx.lineTo((column + 0.5) * wide, bottom + more);
  };
  for (let place = first; place < last; place++) {
    const at = toY(y[place]!);
    if (at - at !== 0) {
      if (!Number.isNaN(column)) finish();
      column = NaN;
      continue;
    }
    const here = Math.floor(toX(x[place]!) / wide);
    if (here === column) {
      if (at < top) top = at;
      if (at > bottom) bottom = at;
    } else if (Number.isNaN(column)) {
      top = bottom = at;
    } else {
      finish();
      if (Math.abs(here - column) > 1) {
        ctx.moveTo((column + 0.5) * wide, end);
        ctx.lineTo((here + 0.5) * wide, at);
        top = bottom = at;
      } else {
        // The stroke begins where that of the last column ends.
        const [above, below] = [top, bottom];
        top = Math.min(at, below);
        bottom = Math.max(at, above);
      }
    }
    column = here;
    end = at;
  }
  if (!Number.isNaN(column)) finish();
  ctx.stroke();
}

function traceColumns(ctx: CanvasRenderingContext2D, x: Float64Array, y: Float32Array, first: number, last: number, toX: ToPixel, toY: ToPixel): void {
  let column = NaN;
  let top = 0;
  let bottom = 0;
  let end = 0;
  const finish = () => {
    if (Number.isNaN(column) || top === bottom) return;
    ctx.lineTo(column, top);
    ctx.lineTo(column, bottom);
    ctx.lineTo(column, end);
  };
  for (let place = first; place < last; place++) {
    const at = toY(y[place]!);
    if (at - at !== 0) {
      finish();
      column = NaN;
      continue;
    }
    const here = Math.round(toX(x[place]!));
    if (here === column) {
      if (at < top) top = at;
      if (at > bottom) bottom = at;
    } else {
      finish();
      if (Number.isNaN(column)) ctx.moveTo(here, at);
      else ctx.lineTo(here, at);
      column = here;
      top = bottom = at;
    }
    end = at;
  }
  finish();
}

function paintBand(ctx: CanvasRenderingContext2D, frame: Frame, line: Line, look: Look, toX: ToPixel, toY: ToPixel): void {
  const { low, high, x } = line;
  if (!low || !high || (look.weight > 0 && !line.group)) return;
  const [first, last] = seen(frame, x);
  const floor = frame.top + frame.height;
  ctx.fillStyle = faded(line.colour, line.group ? 0.18 : 0.16);
  ctx.beginPath();
  let begin = first;
  const close = (end: number) => {
    for (let place = end - 1; place >= begin; place--) {
      const at = toY(low[place]!);
      ctx.lineTo(toX(x[place]!), at - at === 0 ? at : floor);
    }
    ctx.closePath();
  };
  let isOpen = false;
  for (let place = first; place < last; place++) {
    const at = toY(high[place]!);
    if (at - at !== 0) {
      if (isOpen) close(place);
      isOpen = false;
      continue;
    }
    if (!isOpen) {
      begin = place;
      ctx.moveTo(toX(x[place]!), at);
      isOpen = true;
    } else ctx.lineTo(toX(x[place]!), at);
  }
  if (isOpen) close(last);
  ctx.fill();
}

/** A band as thin as a spike is too pale to be seen: spikes are strokes. */
function paintSpikes(ctx: CanvasRenderingContext2D, line: Line, look: Look, toX: ToPixel, toY: ToPixel): void {
  ctx.strokeStyle = line.colour;
  ctx.lineWidth = look.pixels;
  ctx.beginPath();
  for (const place of spikes(line)) {
    const at = toX(line.x[place]!);
    ctx.moveTo(at, toY(line.low![place]!));
    ctx.lineTo(at, toY(line.high![place]!));
  }
  ctx.stroke();
}
