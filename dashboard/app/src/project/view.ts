// How one looks at a project: all of it stands in the address.

import { useMemo } from "preact/hooks";
import type { Span } from "../chart/lines";
import type { XKind } from "../chart/plot";
import type { Sort } from "../components/Table";
import { changeQuery, usePlace } from "../router";
import type { FieldNames } from "../shapes";

/** What runs said of their metrics by `define_metric`. */
export type Defined = FieldNames["defined"];
export type Spread = "std" | "stderr" | "range";
export type Panel = "both" | "runs" | "charts";

export interface ProjectView {
  words: string;
  sort: Sort;
  hidden: ReadonlySet<number>;
  /** Where it is set, these alone are drawn: an address with a few chosen ones, not with all others. */
  only: ReadonlySet<number> | null;
  pinned: ReadonlySet<number>;
  columns: string[] | null;
  group: string;
  spread: Spread;
  x: string;
  smoothing: number;
  logX: boolean;
  logY: ReadonlySet<string>;
  zoom: Span | null;
  metrics: string;
  panel: Panel;
  compare: number[];
}

const NEWEST: Sort = { name: "created", descending: true };

export function useProjectView(): ProjectView {
  const { query } = usePlace();
  const text = query.toString();
  return useMemo(() => readView(query), [text]);
}

export function readView(query: URLSearchParams): ProjectView {
  const sort = query.get("sort");
  return {
    words: query.get("q") ?? "",
    sort: sort ? { name: sort.replace(/^-/, ""), descending: sort.startsWith("-") } : NEWEST,
    hidden: new Set(numbers(query.get("hide"))),
    only: query.has("only") ? new Set(numbers(query.get("only"))) : null,
    pinned: new Set(numbers(query.get("pin"))),
    columns: query.has("cols") ? query.get("cols")!.split(",").map(decodeURIComponent).filter(Boolean) : null,
    group: query.get("group") ?? "",
    spread: (query.get("spread") as Spread | null) ?? "std",
    x: query.get("x") ?? "_step",
    smoothing: Math.min(0.99, Math.max(0, Number(query.get("smooth") ?? 0) || 0)),
    logX: query.has("logx"),
    logY: new Set((query.get("logy") ?? "").split(",").filter(Boolean).map(decodeURIComponent)),
    zoom: spanOf(query.get("zoom")),
    metrics: query.get("metrics") ?? "",
    panel: (query.get("panel") as Panel | null) ?? "both",
    compare: numbers(query.get("compare")),
  };
}

function numbers(text: string | null): number[] {
  return (text ?? "").split(",").filter(Boolean).map(Number).filter(Number.isInteger);
}

function spanOf(text: string | null): Span | null {
  const [low, high] = (text ?? "").split("..").map(Number);
  return low !== undefined && high !== undefined && low < high ? [low, high] : null;
}

export const change = {
  sort: (sort: Sort) => changeQuery({ sort: `${sort.descending ? "-" : ""}${sort.name}` }),
  /** Draw a run, or draw it no more. */
  drawn: (view: ProjectView, key: number) => {
    const next = new Set(view.only ?? view.hidden);
    if (!next.delete(key)) next.add(key);
    changeQuery(view.only ? { only: [...next].join() || "-" } : { hide: [...next].join() || null });
  },
  only: (keys: Iterable<number>) => changeQuery({ only: [...keys].join(), hide: null }),
  allDrawn: () => changeQuery({ only: null, hide: null }),
  pinned: (keys: Iterable<number>) => changeQuery({ pin: [...keys].join() || null }),
  columns: (names: string[] | null) => changeQuery({ cols: names && names.map(encodeURIComponent).join() }),
  zoom: (span: Span | null) => changeQuery({ zoom: span && span.map((value) => Number(value.toPrecision(9))).join("..") }),
  logY: (names: Iterable<string>) => changeQuery({ logy: [...names].map(encodeURIComponent).join() || null }),
  logX: (on: boolean) => changeQuery({ logx: on ? "1" : null }),
  smoothing: (value: number) => changeQuery({ smooth: value ? String(value) : null }),
  x: (name: string) => changeQuery({ x: name === "_step" ? null : name, zoom: null }),
  group: (name: string) => changeQuery({ group: name || null }),
  spread: (name: Spread) => changeQuery({ spread: name === "std" ? null : name }),
  panel: (name: Panel) => changeQuery({ panel: name === "both" ? null : name }),
  compare: (keys: number[]) => changeQuery({ compare: keys.join() || null }),
  metrics: (words: string) => changeQuery({ metrics: words || null }),
};

export const X_CHOICES: [string, string][] = [
  ["_step", "Step"],
  ["_runtime", "Time since start"],
  ["_timestamp", "Time of day"],
];

export function isDrawn(view: ProjectView, key: number): boolean {
  return view.only ? view.only.has(key) : !view.hidden.has(key);
}

/** What a metric's chart has on its x axis: what was chosen, or the step that `define_metric` names. */
export function xOf(metric: string, x: string, defined: Defined | undefined): string {
  return x === "_step" ? (defined?.[metric]?.step ?? "_step") : x;
}

export function kindOfX(x: string): XKind {
  return x === "_runtime" ? "duration" : x === "_timestamp" ? "time" : "number";
}

const X_NAMES: Record<string, string> = { _step: "step", _runtime: "time since start", _timestamp: "time of day" };

export function labelOfX(x: string): string {
  return X_NAMES[x] ?? x;
}

/** `_step` is what the server takes when nothing is said. */
export function askedX(x: string): string | null {
  return x === "_step" ? null : x;
}
