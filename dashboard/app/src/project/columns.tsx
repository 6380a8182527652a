// The columns of runs, each declared once: what filters and sorting read, and how the table shows it.

import type { ComponentChildren } from "preact";
import { StateBadge, Tag } from "../components/Badge";
import { exactText, formatAgo, formatDuration, formatTime, formatValue, summaryName } from "../format";
import { isAlive, runtimeOf, type Keys, type Run } from "./runs";

export type Read = (run: Run) => unknown;

interface RunColumn {
  read: Read;
  /** What a search compares, where that is more than what is shown. */
  sought?: Read;
  /** The table's head; a field without one is for filters alone. */
  label?: string;
  width?: number;
  isNumber?: boolean;
  /** In the table before anybody has chosen columns. */
  isUsual?: boolean;
  /** The value in a few letters, where it is not the value's own text. */
  text?: (value: number | null) => string;
  cell?: (run: Run) => ComponentChildren;
}

/** What every run has beside its config and summary, in the order in which columns are offered. */
const RUN_COLUMNS: Record<string, RunColumn> = {
  name: { read: (run) => run.name },
  state: { read: (run) => run.state, label: "State", width: 104, isUsual: true, cell: (run) => <StateBadge state={run.state} /> },
  created: {
    read: (run) => run.created_at,
    label: "Created",
    width: 104,
    isUsual: true,
    text: formatAgo,
    cell: (run) => <span title={formatTime(run.created_at)}>{formatAgo(run.created_at)}</span>,
  },
  runtime: {
    read: runtimeOf,
    label: "Runtime",
    width: 92,
    isNumber: true,
    isUsual: true,
    text: formatDuration,
    cell: (run) => <span class={isAlive(run) ? "busy" : ""}>{formatDuration(runtimeOf(run))}</span>,
  },
  user: { read: (run) => run.user, label: "User" },
  group: { read: (run) => run.group, label: "Group" },
  sweep: { read: (run) => run.sweep_name ?? run.sweep, sought: (run) => [run.sweep, run.sweep_name], label: "Sweep" },
  host: { read: (run) => run.host, label: "Host", width: 120 },
  tags: { read: (run) => run.tags, label: "Tags", width: 140, cell: (run) => <>{run.tags.map((tag) => <Tag text={tag} />)}</> },
  tag: { read: (run) => run.tags },
  notes: { read: (run) => run.notes, label: "Notes", width: 180 },
  id: { read: (run) => run.id, label: "Id", width: 92 },
  job_type: { read: (run) => run.job_type, label: "Job type" },
  exit_code: { read: (run) => run.exit_code, label: "Exit code" },
};

export const OFFERED_COLUMNS = Object.keys(RUN_COLUMNS).filter((name) => RUN_COLUMNS[name]!.label);
export const USUAL_COLUMNS = OFFERED_COLUMNS.filter((name) => RUN_COLUMNS[name]!.isUsual);

/** The declaration of a run's own field; undefined for config and summary. */
export function runColumn(name: string): RunColumn | undefined {
  return Object.hasOwn(RUN_COLUMNS, name) ? RUN_COLUMNS[name] : undefined;
}

/** `ranked` has the metrics of sweeps: their best value and their last one must not be confused. */
export function labelOf(name: string, ranked: Keys["ranked"] = {}): string {
  if (name.startsWith("best.")) return `${name.slice(5)} (best)`;
  if (name.startsWith("summary.")) return Object.hasOwn(ranked, name.slice(8)) ? `${name.slice(8)} (last)` : summaryName(name.slice(8));
  return runColumn(name)?.label ?? name.replace(/^config\./, "");
}

/** A value as short text: what stands there while rows fly past, and what a group's mean is. */
export function shortText(name: string, value: unknown): string {
  const text = runColumn(name)?.text;
  if (text) return text(value as number | null);
  return value === null || value === undefined ? "–" : valueText(name, value);
}

/** Settings to the last digit: two runs that differ in the sixth must not look the same. */
export function valueText(name: string, value: unknown): string {
  return name.startsWith("config.") ? exactText(value) : formatValue(value);
}

export function ValueCell({ name, run, value }: { name: string; run: Run; value: unknown }) {
  const cell = runColumn(name)?.cell;
  if (cell) return <>{cell(run)}</>;
  if (value === null || value === undefined) return <span class="none">–</span>;
  const text = valueText(name, value);
  return (
    <span class="words" title={exactText(value)}>
      {text}
    </span>
  );
}
