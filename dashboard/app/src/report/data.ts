// A report: a kept view of a project, with notes. The view is the project page's address, which
// charts are shown, and whether its runs are those of that time or whatever matches.

import type { ProjectView } from "../project/view";
import { readView } from "../project/view";

export type { Report, ReportHead } from "../shapes";

export interface ReportView {
  /** The project page's query. */
  query?: string;
  /** The metrics that have a chart; null: all of them. */
  metrics?: string[] | null;
  /** Keys of the runs, where they are to stay the same; null: those that the query finds. */
  runs?: number[] | null;
}

/** How the report's charts look: as its author left them, but for what the reader zooms. */
export function viewOf(report: ReportView, zoom: string | null): ProjectView {
  const query = new URLSearchParams(report.query ?? "");
  if (zoom) query.set("zoom", zoom);
  return readView(query);
}
