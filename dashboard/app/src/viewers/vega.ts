// Charts in Vega-Lite or Vega. The text of a chart comes from a user's program, so its expressions are
// interpreted, never turned into code, and nothing that it names is loaded.

import { loader as makeLoader, parse, View, type Loader, type Spec } from "vega";
import { expressionInterpreter } from "vega-interpreter";
import { compile, type Config, type TopLevelSpec } from "vega-lite";
import { serve, type Look } from "./frame";

interface Content {
  spec: Record<string, unknown>;
  rows: Record<string, unknown>[];
}

let view: View | null = null;

serve<Content>(async (box, { spec, rows }, look) => {
  view?.finalize();
  const whole = isVega(spec) ? withRows(spec, rows) : compiled(spec, rows, look);
  view = new View(parse(whole, undefined, { ast: true }), {
    expr: expressionInterpreter,
    loader: closedLoader(),
    renderer: "canvas",
    container: box,
    hover: true,
  });
  await view.runAsync();
});

function isVega(spec: Record<string, unknown>): boolean {
  return /\/vega\/v\d/.test(String(spec.$schema ?? "")) || Array.isArray(spec.marks);
}

/** W&B calls the table that a chart is drawn from `wandb`. */
function withRows(spec: Record<string, unknown>, rows: Content["rows"]): Spec {
  const sets = (Array.isArray(spec.data) ? spec.data : []) as { name: string }[];
  const others = sets.filter((set) => set.name !== "wandb");
  const table = sets.find((set) => set.name === "wandb");
  return { ...spec, data: [{ ...table, name: "wandb", values: rows }, ...others] } as Spec;
}

function compiled(spec: Record<string, unknown>, rows: Content["rows"], look: Look): Spec {
  const sized = { width: "container", height: "container", autosize: { type: "fit", contains: "padding" } };
  const data = spec.data ?? { name: "wandb" };
  const whole = { ...sized, ...spec, data, datasets: { ...(spec.datasets as object), wandb: rows } };
  return compile(whole as unknown as TopLevelSpec, { config: configOf(look) }).spec;
}

function configOf(look: Look): Config {
  const words = { labelColor: look.soft, titleColor: look.soft, titleFontWeight: "normal" as const };
  return {
    background: "transparent",
    font: "system-ui, sans-serif",
    padding: 6,
    title: { color: look.text, fontSize: 13, fontWeight: 600 },
    view: { stroke: look.line },
    axis: { ...words, gridColor: look.line, domainColor: look.line, tickColor: look.line, labelOverlap: true },
    legend: words,
    mark: { color: look.accent, tooltip: true },
    text: { color: look.text },
    range: { category: look.colours },
  };
}

function closedLoader(): Loader {
  const refuse = () => Promise.reject(new Error("A chart loads nothing: its data are in its table."));
  return { ...makeLoader(), load: refuse, sanitize: refuse, http: refuse, file: refuse };
}
