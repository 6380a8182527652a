// The table of runs as a file: CSV for programs, LaTeX for a paper.

import { saveFile } from "../chart/export";
import { csvCell } from "../csv";
import { labelOf } from "./columns";
import { reader } from "./fields";
import type { Keys, Run } from "./runs";

type Form = "csv" | "tex";

export function saveTable(form: Form, runs: readonly Run[], columns: readonly string[], place: string, ranked?: Keys["ranked"]): void {
  const names = ["name", "id", ...columns.filter((name) => name !== "name" && name !== "id")];
  const readers = names.map(reader);
  const head = names.map((name) => labelOf(name, ranked));
  const rows = runs.map((run) => readers.map((read) => plain(read(run))));
  const text = form === "csv" ? [head, ...rows].map((row) => row.map(csvCell).join(",")).join("\n") + "\n" : latex(head, rows);
  saveFile(`${place.replace("/", "-")}-runs.${form}`, new Blob([text], { type: form === "csv" ? "text/csv" : "application/x-tex" }));
}

/** Exact: every digit that was logged. */
function plain(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) return value.join(" ");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

const SPECIAL: Record<string, string> = { "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}" };

function latexCell(text: string): string {
  return text.replace(/[\\~^&%$#_{}]/g, (sign) => SPECIAL[sign] ?? `\\${sign}`);
}

function latex(head: string[], rows: string[][]): string {
  const isNumber = head.map((_, place) => rows.some((row) => row[place]) && rows.every((row) => row[place] === "" || Number.isFinite(Number(row[place]))));
  const line = (cells: string[]) => `  ${cells.map(latexCell).join(" & ")} \\\\`;
  return [
    "% needs \\usepackage{booktabs}",
    `\\begin{tabular}{${isNumber.map((number) => (number ? "r" : "l")).join("")}}`,
    "  \\toprule",
    line(head),
    "  \\midrule",
    ...rows.map(line),
    "  \\bottomrule",
    "\\end{tabular}",
    "",
  ].join("\n");
}
