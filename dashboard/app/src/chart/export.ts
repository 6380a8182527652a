// A chart as a file: a picture as it is shown, a drawing, or its numbers.

import { csvCell } from "../csv";
import { inOrder, smooth, spikes, type Line } from "./lines";
import { scaleX, scaleY } from "./paint";
import type { Plot, View } from "./plot";

export function saveFile(name: string, content: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name.replace(/[^\w.-]+/g, "_");
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export const PICTURES = ["png", "svg", "pdf"] as const;

/** With title, axes' names and legend: as it goes into a paper or a talk. */
export async function savePicture(kind: (typeof PICTURES)[number], plot: Plot, view: View, title: string): Promise<void> {
  const text = drawing(plot, view, title, true);
  if (!text) return;
  const make = { svg: () => new Blob([text], { type: "image/svg+xml" }), png: () => painted(text), pdf: async () => (await import("./pdf")).toPdf(text) };
  saveFile(`${title}.${kind}`, await make[kind]());
}

// Three times as many pixels as on the screen: sharp in print.
const SHARPNESS = 3;

async function painted(svg: string): Promise<Blob> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = image.width * SHARPNESS;
  canvas.height = image.height * SHARPNESS;
  canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done, fail) => canvas.toBlob((blob) => (blob ? done(blob) : fail(new Error("the picture is too large"))), "image/png"));
}

export function saveCsv(lines: readonly Line[], title: string, x: string): void {
  const rows = [["line", x, "value", "low", "high"].map(csvCell).join(",")];
  for (const line of lines) {
    for (let place = 0; place < line.x.length; place++) {
      rows.push([csvCell(line.label), line.x[place], line.y[place], line.low?.[place] ?? "", line.high?.[place] ?? ""].join(","));
    }
  }
  saveFile(`${title}.csv`, new Blob([rows.join("\n"), "\n"], { type: "text/csv" }));
}

/** The chart as SVG: with axes, bands and lines as they are on the screen, and a legend under it. */
export function drawing(plot: Plot, view: View, title: string, withLegend: boolean): string | null {
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
  const bottom = top + height + 38;
  const legend = withLegend && view.lines.length > 1 ? legendOf(view.lines, left + width, bottom, colour("--text")) : { text: "", height: 0 };
  const whole = { width: left + width + 16, height: bottom + legend.height };
  const svg =
    `<svg xmlns="http://www.w3.org/2000/svg" width="${whole.width}" height="${whole.height}" font-family="helvetica, arial, sans-serif" font-size="11" fill="${colour("--faint")}">` +
    `<rect width="100%" height="100%" fill="${colour("--surface")}"/>` +
    `<text x="10" y="18" font-size="13" font-weight="bold" fill="${colour("--text")}">${escaped(title)}</text>` +
    `<clipPath id="in"><rect x="${left}" y="${top}" width="${width}" height="${height}"/></clipPath>` +
    `<text x="${left + width / 2}" y="${top + height + 31}" text-anchor="middle">${escaped(view.xName)}</text>` +
    `${parts.join("")}<g clip-path="url(#in)">${drawn.join("")}</g>${legend.text}</svg>`;
  // Drawing programs know colours with commas only.
  return svg.replace(/rgb\((\d+) (\d+) (\d+)\)/g, "rgb($1,$2,$3)");
}

const MOST_NAMED = 40;
const ROW = 16;

/** Names beside their colours, in as many rows as they need. */
function legendOf(lines: readonly Line[], width: number, top: number, colour: string): { text: string; height: number } {
  const named = inOrder(lines).slice(0, MOST_NAMED);
  const parts: string[] = [];
  let [x, y] = [10, top + 10];
  const place = (label: string, swatch: string) => {
    const room = 16 + label.length * 6.4 + 14;
    if (x > 10 && x + room > width) [x, y] = [10, y + ROW];
    if (swatch) parts.push(`<rect x="${x}" y="${y - 8}" width="9" height="9" rx="2" fill="${swatch}"/>`);
    parts.push(`<text x="${x + 14}" y="${y}" fill="${colour}">${escaped(label)}</text>`);
    x += room;
  };
  named.forEach((line) => place(line.label, line.colour));
  if (lines.length > named.length) place(`and ${lines.length - named.length} more`, "");
  return { text: parts.join(""), height: y + 8 - top };
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
