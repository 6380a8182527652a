// What a run logged that is no number: how W&B writes it down, and as what the page shows it.

import { getText } from "../api";
import { hasType } from "../format";

export interface Media {
  _type: string;
  path?: string;
  caption?: string;
  filenames?: string[];
  captions?: (string | null)[] | false;
  values?: number[];
  bins?: number[];
  /** Of a table: the version of an artifact that holds it with all that is in its cells. */
  artifact_path?: string;
  masks?: Record<string, { path: string }>;
  boxes?: Record<string, Boxes>;
  all_masks?: (Media["masks"] | null)[] | false;
  all_boxes?: (Media["boxes"] | null)[] | false;
  [name: string]: unknown;
}

/** A file with the boxes, or, in a table, the boxes. */
export type Boxes = { path: string } | Box[];

export interface Box {
  position: { middle?: [number, number]; width?: number; height?: number; minX?: number; maxX?: number; minY?: number; maxY?: number };
  domain?: string;
  class_id?: number;
  box_caption?: string;
  scores?: Record<string, number>;
}

/** A chart of `wandb.plot`: a preset of W&B's, drawn from a table. */
export interface ChartInfo {
  preset: string;
  fields: Record<string, string>;
  strings: Record<string, string>;
  table: string;
  /** What somebody has defined on this server; null for W&B's presets. */
  spec: Record<string, unknown> | null;
}

/** Names of classes by their number. */
export type Labels = Record<string, string>;

/** What the server tells of a run's media beside the files. */
export interface MediaInfo {
  charts: Record<string, ChartInfo>;
  masks: Record<string, Record<string, Labels>>;
  boxes: Record<string, Record<string, Labels>>;
}

/** An object that names its type, as all of W&B's media do. */
export const isMedia = hasType as (value: unknown) => value is Media;

export type Kind = "image" | "video" | "audio" | "html" | "histogram" | "table" | "plotly" | "solid" | "molecule" | "other";

const KINDS: Record<string, Kind> = {
  "image-file": "image",
  "images/separated": "image",
  "video-file": "video",
  videos: "video",
  "audio-file": "audio",
  audio: "audio",
  "html-file": "html",
  html: "html",
  histogram: "histogram",
  table: "table",
  "table-file": "table",
  "incremental-table-file": "table",
  "plotly-file": "plotly",
  "object3D-file": "solid",
  object3D: "solid",
  "molecule-file": "molecule",
  molecule: "molecule",
};

export function kindOf(value: Media): Kind {
  return KINDS[value._type] ?? "other";
}

/** The single things in a value: a program may log a list of them under one name. */
export function itemsOf(value: Media): Media[] {
  const list = ["videos", "audio", "html", "objects"].map((name) => value[name]).find((some) => Array.isArray(some) && some.every(isMedia));
  if (list) return list as Media[];
  if (!value.filenames) return [value];
  const kind = kindOf(value);
  return value.filenames.map((path, place) => ({
    _type: kind === "molecule" ? "molecule-file" : "image-file",
    path,
    caption: (value.captions || [])[place] ?? undefined,
    masks: (value.all_masks || [])[place] ?? undefined,
    boxes: (value.all_boxes || [])[place] ?? undefined,
  }));
}

/** Names of all media in a summary, those inside of nested values with a dot. */
export function mediaIn(summary: Record<string, unknown>, before = ""): [string, Media][] {
  return Object.entries(summary).flatMap(([name, value]): [string, Media][] => {
    if (isMedia(value)) return [[before + name, value]];
    return typeof value === "object" && value !== null && !Array.isArray(value) ? mediaIn(value as Record<string, unknown>, `${before}${name}.`) : [];
  });
}

// Pictures first; tables, which take the whole width, last.
const ORDER: Kind[] = ["image", "video", "audio", "histogram", "plotly", "solid", "molecule", "html", "other", "table"];

/** The names of a run's panels: a chart stands in the place of its table. */
export function mediaNames(summary: Record<string, unknown>, charts: Record<string, ChartInfo> = {}): string[] {
  const all = mediaIn(summary);
  const present = new Set(all.map(([name]) => name));
  const drawn = Object.entries(charts).filter(([, chart]) => present.has(chart.table));
  const tables = new Set(drawn.map(([, chart]) => chart.table));
  const rank = (value: Media) => ORDER.indexOf(kindOf(value));
  const others = all.filter(([name]) => !tables.has(name)).sort(([left, a], [right, b]) => rank(a) - rank(b) || left.localeCompare(right));
  const isTable = ([, value]: [string, Media]) => kindOf(value) === "table";
  return [...others.filter((entry) => !isTable(entry)), ...drawn.sort(([a], [b]) => a.localeCompare(b)), ...others.filter(isTable)].map(([name]) => name as string);
}

export interface Logged {
  step: number;
  value: Media;
}

/** Every logged value under a name, in the order of its logging. */
export async function readLogged(run: number, name: string): Promise<Logged[]> {
  const text = await getText(`api/runs/${run}/rows?${new URLSearchParams({ metric: name, steps: "1" })}`);
  return text
    .split("\n")
    .filter(Boolean)
    .flatMap((line) => {
      const row = parsed<Record<string, unknown>>(line);
      const value = row && valueAt(row, name);
      return isMedia(value) ? [{ step: Number(row!._step ?? row!._row), value }] : [];
    });
}

function valueAt(row: Record<string, unknown>, name: string): unknown {
  if (name in row) return row[name];
  for (let dot = name.indexOf("."); dot > 0; dot = name.indexOf(".", dot + 1)) {
    const inner = row[name.slice(0, dot)];
    if (typeof inner === "object" && inner !== null) return valueAt(inner as Record<string, unknown>, name.slice(dot + 1));
  }
  return undefined;
}

/** Rows and tables come in Python's dialect. */
export function parsed<T>(text: string): T | null {
  try {
    return JSON.parse(text) as T;
  } catch {
    try {
      return JSON.parse(text.replace(/(?<=[:,[]\s*)(NaN|-?Infinity)(?=\s*[,\]}])/g, "null")) as T;
    } catch {
      return null;
    }
  }
}
