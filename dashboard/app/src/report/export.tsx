// A report as one HTML file that needs nothing else: notes, charts as drawings, the table of runs,
// and the numbers behind the charts.

import { render } from "preact";
import { drawing, escaped, saveFile } from "../chart/export";
import type { Line } from "../chart/lines";
import { Plot, type View } from "../chart/plot";
import { formatTime } from "../format";
import { labelOf, shortText } from "../project/columns";
import { reader } from "../project/fields";
import { fetchCurves } from "../project/curves";
import { groupLine, runLine } from "../project/MetricChart";
import type { Keys, Run } from "../project/runs";
import type { Group } from "../project/useProject";
import { askedX, kindOfX, labelOfX, xOf, type Defined, type ProjectView } from "../project/view";
import { theme } from "../theme";
import type { Report } from "./data";
import { Markdown } from "./markdown";
import { MOST_ROWS, shownColumns } from "./Table";

export interface Content {
  report: Report;
  view: ProjectView;
  metrics: readonly string[];
  runs: readonly Run[];
  groups: readonly Group[] | null;
  columns: readonly string[];
  defined?: Defined;
  ranked?: Keys["ranked"];
}

const POINTS = 500;
const SIZE = { width: 560, height: 260 };

export async function saveReport(content: Content): Promise<void> {
  const text = await offline(content);
  saveFile(`${content.report.title}.html`, new Blob([text], { type: "text/html" }));
}

export async function offline(content: Content): Promise<string> {
  const { report, runs, groups } = content;
  const charts = await drawCharts(content);
  const legend = groups
    ? charts.lines.map((line) => `<li><i style="background:${line.colour}"></i>${escaped(line.label)}</li>`)
    : runs.slice(0, MOST_ROWS).map((run) => `<li><i style="background:${runLine(run, null, theme.value).colour}"></i>${escaped(run.name)}</li>`);
  const numbers = JSON.stringify(charts.numbers).replaceAll("<", "\\u003c");
  return (
    `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">` +
    `<title>${escaped(report.title)}</title><style>${STYLE}</style></head><body><main>` +
    `<h1>${escaped(report.title)}</h1><p class="soft">${escaped(`${report.entity}/${report.project}, ${report.user}, saved ${formatTime(report.updated_at)}`)}</p>` +
    `<section>${rendered(report.notes)}</section>` +
    `<section class="charts">${charts.drawings.map((svg) => `<figure>${svg}</figure>`).join("")}</section>` +
    (charts.drawings.length ? `<ul class="legend">${legend.join("")}</ul>` : "") +
    table(content) +
    `</main><script type="application/json" id="numbers">${numbers}</script></body></html>`
  );
}

function rendered(notes: string): string {
  const box = document.createElement("div");
  render(<Markdown text={notes} />, box);
  const text = box.innerHTML;
  render(null, box);
  return text;
}

interface Drawn {
  drawings: string[];
  lines: Line[];
  numbers: Record<string, { line: string; x: number[]; y: (number | null)[] }[]>;
}

async function drawCharts({ report, view, metrics, runs, groups, defined }: Content): Promise<Drawn> {
  const wanted = groups ? { groups: groups.map((group) => group.runs) } : { runs: runs.map((run) => run.key) };
  // Each over its own x, which `define_metric` may have named.
  const axes = new Set(metrics.map((metric) => xOf(metric, view.x, defined)));
  const answers = await Promise.all(
    [...axes].map((x) => {
      const setting = { project: `${report.entity}/${report.project}`, stream: "history" as const, x: askedX(x), points: POINTS, range: x === view.x ? view.zoom : null };
      return fetchCurves(setting, metrics.filter((metric) => xOf(metric, view.x, defined) === x), wanted);
    }),
  );
  const curves = answers.flat();
  const known = new Map(runs.map((run) => [run.key, run]));
  const drawn: Drawn = { drawings: [], lines: [], numbers: {} };
  for (const metric of metrics) {
    const lines = curves.flatMap((curve) => {
      if (curve.metric !== metric) return [];
      if (groups) return groups[curve.group!] ? [groupLine(groups[curve.group!]!, curve, view.spread, theme.value)] : [];
      const run = known.get(curve.run!);
      return run ? [runLine(run, curve, theme.value)] : [];
    });
    if (!lines.length) continue;
    const x = xOf(metric, view.x, defined);
    drawn.drawings.push(await draw(metric, lines, x === view.x ? view : { ...view, x, zoom: null }));
    if (lines.length > drawn.lines.length) drawn.lines = lines;
    drawn.numbers[metric] = lines.map((line) => ({ line: line.label, x: [...line.x], y: [...line.y].map((value) => (Number.isFinite(value) ? Number(value.toPrecision(6)) : null)) }));
  }
  return drawn;
}

/** Off the screen, in the size that the file has it. */
async function draw(metric: string, lines: Line[], view: ProjectView): Promise<string> {
  const host = document.createElement("div");
  host.style.cssText = `position:fixed;left:-10000px;top:0;width:${SIZE.width}px;height:${SIZE.height}px`;
  document.body.append(host);
  const shown: View = { lines, logX: view.logX, logY: view.logY.has(metric) || view.logY.has("*"), xKind: kindOfX(view.x), xName: labelOfX(view.x), weight: view.smoothing, bands: true, zoom: view.zoom };
  const plot = new Plot(host, shown, { zoom: () => undefined, point: () => undefined });
  // Its scales are there when it has painted itself for the first time.
  await new Promise((done) => setTimeout(done, 0));
  const svg = drawing(plot, shown, metric, false) ?? "";
  plot.close();
  host.remove();
  // Each drawing has a clip of its own.
  return svg.replaceAll('"in"', `"in-${encodeURIComponent(metric)}"`).replaceAll("url(#in)", `url(#in-${encodeURIComponent(metric)})`);
}

function table({ runs, columns, ranked }: Content): string {
  const names = shownColumns(columns);
  const readers = names.map((name) => reader(name));
  const head = ["run", "state", ...names.map((name) => labelOf(name, ranked))];
  const rows = runs.slice(0, MOST_ROWS).map((run) => `<tr><th>${escaped(run.name)}</th><td>${escaped(run.state)}</td>${names.map((name, place) => `<td>${escaped(shortText(name, readers[place]!(run)))}</td>`).join("")}</tr>`);
  const more = runs.length > MOST_ROWS ? `<p class="soft">and ${runs.length - MOST_ROWS} more</p>` : "";
  return `<section class="runs"><table><thead><tr>${head.map((name) => `<th>${escaped(name)}</th>`).join("")}</tr></thead><tbody>${rows.join("")}</tbody></table>${more}</section>`;
}

const STYLE = `
:root{color-scheme:light dark}
body{margin:0;font:15px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;background:#fff;color:#1b2130}
main{max-width:1180px;margin:0 auto;padding:28px 18px 60px}
h1{font-size:26px;margin:0 0 2px}.soft{color:#565f73}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(520px,100%),1fr));gap:14px;margin:20px 0 8px}
figure{margin:0;border:1px solid #e2e5eb;border-radius:8px;overflow:hidden}figure svg{display:block;width:100%;height:auto}
.legend{display:flex;flex-wrap:wrap;gap:4px 16px;list-style:none;padding:0;font-size:13px}.legend i{display:inline-block;width:10px;height:10px;border-radius:3px;margin-right:6px}
.runs{overflow-x:auto}table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums}th,td{padding:4px 12px 4px 0;text-align:left;border-bottom:1px solid #e2e5eb;white-space:nowrap}
code{font-family:ui-monospace,Menlo,Consolas,monospace;font-size:.9em}pre{background:#eff1f5;padding:10px 14px;border-radius:6px;overflow-x:auto}
blockquote{margin:0;padding-left:14px;border-left:3px solid #cdd2dc;color:#565f73}
@media(prefers-color-scheme:dark){body{background:#101319;color:#e4e8f0}.soft,blockquote{color:#a3acbe}figure,th,td{border-color:#272d39}pre{background:#161a22}a{color:#8ea4ff}}
@media print{figure{break-inside:avoid}}
`;
