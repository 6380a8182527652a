// W&B's charts, whose definitions are on its server and nowhere else: ours in their place, in Vega-Lite.
// A row has a value for each field of the preset, so that no column's name needs quoting.

import type { ChartInfo } from "./values";

type Spec = Record<string, unknown>;
type Preset = (title: (field: string) => string, strings: Record<string, string>, fields: Record<string, string>) => Spec;

const quantity = (field: string, title: string, more: object = {}) => ({ field, type: "quantitative", title, ...more });
const name = (field: string, title: string, more: object = {}) => ({ field, type: "nominal", title, ...more });
const unzeroed = { scale: { zero: false } };

const PRESETS: Record<string, Preset> = {
  "wandb/line/v0": (title, _strings, fields) => ({
    mark: { type: "line", tooltip: true },
    encoding: {
      x: quantity("x", title("x"), unzeroed),
      y: quantity("y", title("y"), unzeroed),
      ...(fields.stroke && { color: name("stroke", title("stroke")) }),
    },
  }),
  "wandb/scatter/v0": (title) => ({
    mark: { type: "point", filled: true, tooltip: true },
    encoding: { x: quantity("x", title("x"), unzeroed), y: quantity("y", title("y"), unzeroed) },
  }),
  "wandb/bar/v0": (title) => ({
    mark: { type: "bar", tooltip: true },
    encoding: { y: name("label", title("label"), { sort: null }), x: quantity("value", title("value")) },
  }),
  "wandb/histogram/v0": (title) => ({
    mark: { type: "bar", tooltip: true },
    encoding: { x: quantity("value", title("value"), { bin: { maxbins: 30 } }), y: { aggregate: "count", type: "quantitative", title: "count" } },
  }),
  "wandb/lineseries/v0": (_title, strings) => ({
    mark: { type: "line", tooltip: true },
    encoding: { x: quantity("step", strings.xname ?? "x", unzeroed), y: quantity("lineVal", "", unzeroed), color: name("lineKey", "") },
  }),
  "wandb/confusion_matrix/v1": () => ({
    encoding: { x: name("Predicted", "predicted", { sort: null, axis: { labelAngle: -40 } }), y: name("Actual", "actual", { sort: null }) },
    layer: [
      { mark: { type: "rect", tooltip: true }, encoding: { color: quantity("nPredictions", "count", { scale: { scheme: "blues" } }) } },
      {
        mark: { type: "text" },
        encoding: {
          text: quantity("nPredictions", ""),
          // Blue on white: the letters are dark where the ground is light.
          color: { condition: { test: "datum.nPredictions > datum.most / 2", value: "white" }, value: "#223" },
        },
      },
    ],
    transform: [{ joinaggregate: [{ op: "max", field: "nPredictions", as: "most" }] }],
  }),
  "wandb/area-under-curve/v0": (title, strings) => ({
    mark: { type: "line", tooltip: true, interpolate: "linear" },
    encoding: {
      x: quantity("x", strings["x-axis-title"] ?? title("x"), { scale: { domain: [0, 1] } }),
      y: quantity("y", strings["y-axis-title"] ?? title("y"), { scale: { domain: [0, 1] } }),
      color: name("class", "class"),
      order: { field: "x", type: "quantitative" },
    },
  }),
};

export interface TableRows {
  columns: (string | number)[];
  data: unknown[][];
}

export interface Drawing {
  spec: Spec;
  rows: Record<string, unknown>[];
}

/** What the viewer draws; null for a preset that somebody made on another server. */
export function drawingOf(chart: ChartInfo, table: TableRows): Drawing | null {
  if (chart.spec) return ownDrawing(chart.spec, chart, table);
  // Presets may differ in their version only by looks.
  const preset = PRESETS[chart.preset] ?? PRESETS[Object.keys(PRESETS).find((known) => known.replace(/\/v\d+$/, "") === chart.preset.replace(/\/v\d+$/, "")) ?? ""];
  if (!preset) return null;
  const places = Object.entries(chart.fields).map(([field, column]): [string, number] => [field, table.columns.findIndex((label) => String(label) === String(column))]);
  const rows = table.data.map((cells) => Object.fromEntries(places.map(([field, place]) => [field, cells[place]])));
  const spec = preset((field) => String(chart.fields[field] ?? field), chart.strings, chart.fields);
  return { spec: { ...spec, ...(chart.strings.title && { title: chart.strings.title }) }, rows };
}

/** A chart that somebody defined: `${field:NAME}` and `${string:NAME}` in it are the run's to say. */
function ownDrawing(spec: Spec, chart: ChartInfo, table: TableRows): Drawing {
  const columns = table.columns.map((column) => plain(String(column)));
  const rows = table.data.map((cells) => Object.fromEntries(columns.map((column, place) => [column, cells[place]])));
  const filled = (text: string) =>
    text.replace(/\$\{(field|string):([^}:]*)(?::([^}]*))?\}/g, (_all, kind: string, name: string, otherwise = "") =>
      kind === "field" ? plain(String(chart.fields[name] ?? name)) : String(chart.strings[name] ?? otherwise),
    );
  return { spec: eachText(spec, filled) as Spec, rows };
}

/** Vega reads points and brackets in a field's name as steps into it. */
function plain(column: string): string {
  return column.replace(/[.[\]\\"']/g, "_");
}

function eachText(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) return value.map((part) => eachText(part, change));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, eachText(part, change)]));
}
