// Cells of CSV files, by the same rule as `csv_cell` of runyard/report/export.py.

const FORMULA = /^[=+\-@\t\r]/;
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+|inf|nan|infinity)(e[+-]?\d+)?$/i;

/** A spreadsheet runs a cell that begins like a formula: such text gets a ' before it, numbers stay. */
export function csvCell(text: string): string {
  const safe = FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
