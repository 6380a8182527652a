// One chart on the page: uPlot's axes, grid, cursor and selection around lines that we draw.

import uPlot from "uplot";
import { Observed } from "../observe";
import { near, spanOfX, spanOfY, type Line, type Near, type Span } from "./lines";
import { paintLines, paintOver, type Frame, type Look } from "./paint";

export type XKind = "number" | "duration" | "time";

export interface View {
  lines: readonly Line[];
  logX: boolean;
  logY: boolean;
  xKind: XKind;
  /** What stands under the x axis. */
  xName: string;
  weight: number;
  bands: boolean;
  zoom: Span | null;
}

export interface Pointer {
  left: number;
  top: number;
  x: number;
  nearest: Near[];
}

export interface Hearing {
  zoom: (span: Span | null) => void;
  point: (pointer: Pointer | null) => void;
}

/** The run or group under the pointer, in whichever chart or table. */
export const hovered = new Observed<number | string | null>(null);

const SYNC = uPlot.sync("runyard");
// Nearer than this, in pixels, a line counts as pointed at.
const REACH = 24;

export class Plot {
  private chart: uPlot | null = null;
  private readonly over = document.createElement("canvas");
  private readonly stops: (() => void)[] = [];
  private isPointed = false;
  private shape = "";

  constructor(
    private readonly host: HTMLElement,
    private view: View,
    private readonly hearing: Hearing,
  ) {
    this.over.className = "plot-over";
    this.over.width = 0;
    this.stops.push(hovered.listen(() => this.paintHovered()));
    const watch = new ResizeObserver(() => this.fit());
    watch.observe(host);
    this.stops.push(() => watch.disconnect());
    this.make();
  }

  close(): void {
    this.stops.forEach((stop) => stop());
    this.chart?.destroy();
    this.chart = null;
  }

  show(view: View): void {
    this.view = view;
    // What kind of scales there are is fixed when a chart is made.
    if (this.shapeOf(view) !== this.shape) this.make();
    else this.refresh();
  }

  /** Colours come from the style sheet, which has changed. */
  repaint(): void {
    this.make();
  }

  get canvas(): HTMLCanvasElement | null {
    return this.chart?.ctx.canvas ?? null;
  }

  get frame(): Frame | null {
    const chart = this.chart;
    if (!chart) return null;
    const { min: x0, max: x1 } = chart.scales.x!;
    const { min: y0, max: y1 } = chart.scales.y!;
    if (x0 == null || x1 == null || y0 == null || y1 == null) return null;
    const { left, top, width, height } = chart.bbox;
    return { left, top, width, height, x: [x0, x1], y: [y0, y1], logX: this.view.logX, logY: this.view.logY };
  }

  /** The marks of an axis (0: x, 1: y): their values and what stands beside them. */
  marks(axis: 0 | 1): { value: number; text: string }[] {
    const made = this.chart?.axes[axis] as unknown as { _splits?: number[]; _values?: (string | null)[] } | undefined;
    const texts = made?._values ?? [];
    return (made?._splits ?? []).map((value, place) => ({ value, text: String(texts[place] ?? "") }));
  }

  private shapeOf(view: View): string {
    return `${view.logX} ${view.logY} ${view.xKind} ${view.xName}`;
  }

  private make(): void {
    this.chart?.destroy();
    this.shape = this.shapeOf(this.view);
    const { width, height } = this.size();
    this.chart = new uPlot(this.options(width, height), this.data(), this.host);
    this.chart.over.append(this.over);
    this.listenTo(this.chart.over);
    this.paintHovered();
  }

  private size(): { width: number; height: number } {
    return { width: Math.max(80, this.host.clientWidth), height: Math.max(60, this.host.clientHeight) };
  }

  private fit(): void {
    const { width, height } = this.size();
    if (!this.chart || (this.chart.width === width && this.chart.height === height)) return;
    this.chart.setSize({ width, height });
    this.paintHovered();
  }

  private refresh(): void {
    this.chart?.setData(this.data(), true);
  }

  /** uPlot itself draws nothing; it only needs to know how far x reaches. */
  private data(): uPlot.AlignedData {
    const [low, high] = spanOfX(this.view.lines, this.view.logX) ?? [0, 1];
    return [
      [low, high],
      [null, null],
    ];
  }

  private spanX(): Span {
    const span = this.view.zoom ?? spanOfX(this.view.lines, this.view.logX) ?? (this.view.logX ? [1, 10] : [0, 1]);
    const [low, high] = span;
    if (low < high) return [low, high];
    return this.view.logX ? [low / 2, low * 2] : [low - 0.5, high + 0.5];
  }

  private spanY(): Span {
    const { lines, weight, bands, logY } = this.view;
    const span = spanOfY(lines, this.spanX(), weight, bands, logY);
    if (!span) return logY ? [1, 10] : [0, 1];
    const [low, high] = span;
    if (logY) {
      const [bottom, top] = low < high ? span : [low / 2, low * 2];
      return [bottom / (top / bottom) ** 0.05, top * (top / bottom) ** 0.05];
    }
    if (low === high) {
      const room = Math.abs(low) * 0.1 || 1;
      return [low - room, high + room];
    }
    const room = (high - low) * 0.06;
    // A chart of what is never negative does not begin below zero.
    return [low >= 0 && low - room < 0 ? 0 : low - room, high + room];
  }

  private options(width: number, height: number): uPlot.Options {
    const style = getComputedStyle(document.documentElement);
    const colour = (name: string) => style.getPropertyValue(name).trim();
    const font = "11px system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
    const axis = {
      stroke: colour("--faint"),
      font,
      grid: { stroke: colour("--line"), width: 1 },
      ticks: { show: false },
    };
    const { logX, logY, xKind } = this.view;
    return {
      width,
      height,
      padding: [8, 12, 0, 0],
      legend: { show: false },
      scales: {
        x: { time: xKind === "time", distr: logX ? 3 : 1, range: () => this.spanX() },
        y: { distr: logY ? 3 : 1, range: () => this.spanY() },
      },
      series: [{}, { paths: () => null, points: { show: false } }],
      axes: [
        {
          ...axis,
          size: 22,
          gap: 3,
          space: 56,
          label: this.view.xName,
          labelSize: 15,
          labelGap: 0,
          labelFont: font,
          ...(xKind === "time" ? {} : { values: (_: uPlot, splits: number[]) => splits.map((value) => mark(value, xKind)) }),
        },
        { ...axis, size: widthOfMarks, gap: 4, space: 28, values: (_: uPlot, splits: number[]) => splits.map((value) => mark(value, "number")) },
      ],
      cursor: {
        sync: { key: SYNC.key, scales: ["x", null] },
        drag: { x: true, y: false, setScale: false },
        points: { show: false },
        bind: {
          dblclick: () => () => {
            this.hearing.zoom(null);
            return null;
          },
        },
      },
      hooks: {
        draw: [(chart) => this.paint(chart)],
        setSelect: [(chart) => this.select(chart)],
        setCursor: [(chart) => this.point(chart)],
      },
    };
  }

  private look(): Look {
    return { weight: this.view.weight, bands: this.view.bands, pixels: devicePixelRatio };
  }

  private paint(chart: uPlot): void {
    this.chart ??= chart;
    const frame = this.frame;
    if (frame) paintLines(chart.ctx, frame, this.view.lines, this.look());
    // uPlot draws some time after it was given data: only now are the scales those of the lines.
    this.paintHovered();
    // For whoever measures, or tests: a canvas does not say what is on it.
    this.host.dataset.lines = String(this.view.lines.length);
    this.host.dataset.top = String(frame?.y[1]);
    this.host.dataset.points = String(this.view.lines.reduce((sum, line) => sum + line.x.length, 0));
  }

  private paintHovered(): void {
    const chart = this.chart;
    const frame = this.frame;
    if (!chart || !frame) return;
    const line = hovered.value === null ? undefined : this.view.lines.find((candidate) => candidate.key === hovered.value);
    if (!line && !this.over.width) return;
    if (!line || this.view.lines.length < 2) {
      this.over.width = 0;
      delete this.over.dataset.top;
      return;
    }
    this.over.width = frame.width;
    this.over.height = frame.height;
    const halo = getComputedStyle(document.documentElement).getPropertyValue("--surface").trim();
    paintOver(this.over.getContext("2d")!, { ...frame, left: 0, top: 0 }, line, this.look(), halo);
    this.over.dataset.top = String(frame.y[1]);
  }

  private select(chart: uPlot): void {
    const { left, width } = chart.select;
    if (width > 4) {
      const low = chart.posToVal(left, "x");
      const high = chart.posToVal(left + width, "x");
      if (low < high) this.hearing.zoom([low, high]);
    }
    if (width) chart.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
  }

  private listenTo(over: HTMLElement): void {
    over.addEventListener("pointerenter", () => {
      this.isPointed = true;
    });
    over.addEventListener("pointerleave", () => {
      this.isPointed = false;
      this.hearing.point(null);
      hovered.set(null);
    });
  }

  private point(chart: uPlot): void {
    if (!this.isPointed) return;
    const { left, top } = chart.cursor;
    if (left == null || top == null || left < 0) return this.hearing.point(null);
    const x = chart.posToVal(left, "x");
    const nearest = near(this.view.lines, x, top, (value) => chart.valToPos(value, "y"), this.view.weight);
    const first = nearest[0];
    hovered.set(first && first.distance < REACH ? first.line.key : null);
    this.hearing.point({ left: left + chart.over.offsetLeft, top: top + chart.over.offsetTop, x, nearest });
  }
}

function widthOfMarks(_: uPlot, values: (string | null)[] | null): number {
  const longest = (values ?? []).reduce((most, text) => Math.max(most, String(text ?? "").length), 0);
  return Math.max(28, 12 + longest * 6.2);
}

const SIZES = [
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
] as const;

export function mark(value: number | null, kind: XKind): string {
  if (value === null) return "";
  if (kind === "duration") {
    if (value < 120) return `${round(value)}s`;
    return value < 7200 ? `${round(value / 60)}m` : `${round(value / 3600)}h`;
  }
  const size = Math.abs(value);
  for (const [unit, letter] of SIZES) if (size >= unit) return `${round(value / unit)}${letter}`;
  if (size !== 0 && size < 1e-3) return value.toExponential(1).replace(".0e", "e");
  return String(round(value));
}

function round(value: number): number {
  return Number(value.toPrecision(4));
}
