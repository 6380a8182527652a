// A chart as a file: a picture as it is shown, a drawing, or its numbers.

import { smooth, spikes, type Line } from "./lines";
import { scaleX, scaleY } from "./paint";
import type { Plot, View } from "./plot";

export function saveFile(name: string, content: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name.replace(/[^\w.-]+/g, "_");
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export function savePng(plot: Plot, title: string): void {
  const shown = plot.canvas;
  if (!shown) return;
  const room = Math.round(26 * devicePixelRatio);
  const canvas = document.createElement("canvas");
  canvas.width = shown.width;
  canvas.height = shown.height + room;
  const ctx = canvas.getContext("2d")!;
  const style = getComputedStyle(document.documentElement);
  ctx.fillStyle = style.getPropertyValue("--surface");
  ctx.fillRect(0, 0, canvas.width, canvas.height);
  ctx.fillStyle = style.getPropertyValue("--text");
  ctx.font = `600 ${13 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.fillText(title, 10 * devicePixelRatio, 18 * devicePixelRatio);
  ctx.drawImage(shown, 0, room);
  canvas.toBlob((blob) => blob && saveFile(`${title}.png`, blob), "image/png");
}

export function saveCsv(lines: readonly Line[], title: string, x: string): void {
  const rows = [["line", x, "value", "low", "high"].map(quoted).join(",")];
  for (const line of lines) {
    for (let place = 0; place < line.x.length; place++) {
      rows.push([quoted(line.label), line.x[place], line.y[place], line.low?.[place] ?? "", line.high?.[place] ?? ""].join(","));
    }
  }
  saveFile(`${title}.csv`, new Blob([rows.join("\n"), "\n"], { type: "text/csv" }));
}

function quoted(text: string): string {
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function saveSvg(plot: Plot, view: View, title: string): void {
  const text = drawing(plot, view, title);
  if (text) saveFile(`${title}.svg`, new Blob([text], { type: "image/svg+xml" }));
}

/** The chart as SVG: with axes, bands and lines as they are on the screen. */
export function drawing(plot: Plot, view: View, title: string): string | null {
  const shown = plot.frame;
  if (!shown) return null;
  const ratio = devicePixelRatio;
  const head = 26;
  const frame = { ...shown, left: shown.left / ratio, top: shown.top / ratio + head, width: shown.width / ratio, height: shown.height / ratio };
  const toX = scaleX(frame);
  const toY = scaleY(frame);
  const { left, top, width, height } = frame;
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  const parts: string[] = [];
  for (const { value, text } of plot.marks(0)) {
    const at = toX(value).toFixed(1);
    parts.push(`<path d="M${at} ${top}V${top + height}" stroke="${colour("--line")}"/>`);
    parts.push(`<text x="${at}" y="${top + height + 16}" text-anchor="middle">${escaped(text)}</text>`);
  }
  for (const { value, text } of plot.marks(1)) {
    const at = toY(value).toFixed(1);
    parts.push(`<path d="M${left} ${at}H${left + width}" stroke="${colour("--line")}"/>`);
    parts.push(`<text x="${left - 6}" y="${at}" dy="4" text-anchor="end">${escaped(text)}</text>`);
  }
  const drawn = view.lines.map((line) => {
    const y = smooth(line.y, view.weight);
    const path = pathOf(line.x, y, toX, toY);
    const band = view.bands && line.low && line.high ? bandOf(line, toX, toY) : "";
    const strokes = view.bands && view.weight <= 0 ? spikes(line).map((place) => `M${toX(line.x[place]!).toFixed(1)} ${toY(line.low![place]!).toFixed(1)}V${toY(line.high![place]!).toFixed(1)}`) : [];
    const spike = strokes.length ? `<path d="${strokes.join("")}" stroke="${line.colour}"/>` : "";
    const fill = band ? `<path d="${band}" fill="${line.colour}" fill-opacity="0.16"/>` : "";
    return `${fill}${spike}<path d="${path}" fill="none" stroke="${line.colour}" stroke-width="1.5"><title>${escaped(line.label)}</title></path>`;
  });
  const whole = { width: left + width + 16, height: top + height + 28 };
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${whole.width}" height="${whole.height}" font-family="system-ui, sans-serif" font-size="11" fill="${colour("--faint")}">` +
    `<rect width="100%" height="100%" fill="${colour("--surface")}"/>` +
    `<text x="10" y="18" font-size="13" font-weight="600" fill="${colour("--text")}">${escaped(title)}</text>` +
    `<clipPath id="in"><rect x="${left}" y="${top}" width="${width}" height="${height}"/></clipPath>` +
    `${parts.join("")}<g clip-path="url(#in)">${drawn.join("")}</g></svg>`
  );
}

type ToPixel = (value: number) => number;

function pathOf(x: Float64Array, y: Float32Array, toX: ToPixel, toY: ToPixel): string {
  let path = "";
  let isDrawing = false;
  for (let place = 0; place < x.length; place++) {
    const at = toY(y[place]!);
    if (!Number.isFinite(at)) {
      isDrawing = false;
      continue;
    }
    path += `${isDrawing ? "L" : "M"}${toX(x[place]!).toFixed(1)} ${at.toFixed(1)}`;
    isDrawing = true;
  }
  return path;
}

function bandOf(line: Line, toX: ToPixel, toY: ToPixel): string {
  const there: string[] = [];
  const back: string[] = [];
  for (let place = 0; place < line.x.length; place++) {
    const [top, bottom] = [toY(line.high![place]!), toY(line.low![place]!)];
    if (!Number.isFinite(top) || !Number.isFinite(bottom)) continue;
    const at = toX(line.x[place]!).toFixed(1);
    there.push(`${at} ${top.toFixed(1)}`);
    back.unshift(`${at} ${bottom.toFixed(1)}`);
  }
  return there.length ? `M${[...there, ...back].join("L")}Z` : "";
}

export function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}
