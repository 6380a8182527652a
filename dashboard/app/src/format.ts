// Numbers, times and sizes as people read them.

export function formatNumber(value: unknown): string {
  if (typeof value !== "number") return formatValue(value);
  if (Number.isInteger(value)) {
    return Math.abs(value) < 1e15 ? value.toLocaleString("en", { useGrouping: "min2" } as Intl.NumberFormatOptions) : value.toExponential(3);
  }
  const size = Math.abs(value);
  if (!Number.isFinite(value)) return String(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(3).replace("e+", "e");
  return String(Number(value.toPrecision(4)));
}

/** A value as it was configured or logged, to the last digit. */
export function exactText(value: unknown): string {
  return typeof value === "number" ? String(value) : formatValue(value);
}

/** `val/acc.max`, which `define_metric(summary="max")` makes, is named `val/acc (max)`, as in a terminal. */
export function summaryName(name: string): string {
  return name.replace(/\.(best|min|max|mean|first|last)$/, " ($1)");
}

/** Any logged or configured value in one line. */
export function formatValue(value: unknown): string {
  if (value === null || value === undefined) return "–";
  if (typeof value === "number") return formatNumber(value);
  if (typeof value === "string") return value;
  if (typeof value === "boolean") return value ? "true" : "false";
  return JSON.stringify(value);
}

export function formatDuration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  const left = Math.max(0, seconds);
  if (left < 9.95) return `${left.toFixed(1)} s`;
  if (left < 119.5) return `${Math.round(left)} s`;
  const minutes = Math.round(left / 60);
  if (minutes < 120) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

export function formatAgo(then: number | null | undefined, now = Date.now() / 1000): string {
  if (then === null || then === undefined) return "–";
  const seconds = Math.max(0, now - then);
  if (seconds < 5) return "just now";
  if (seconds < 120) return `${Math.round(seconds)} s ago`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h ago`;
  return `${Math.round(seconds / 86400)} days ago`;
}

export function formatTime(then: number | null | undefined): string {
  if (then === null || then === undefined) return "–";
  return new Date(then * 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

export function formatSize(bytes: number | null | undefined): string {
  if (bytes === null || bytes === undefined) return "–";
  let left = bytes;
  for (const unit of ["B", "KB", "MB", "GB"]) {
    if (left < 1000) return `${Number(left.toPrecision(3))} ${unit}`;
    left /= 1000;
  }
  return `${Number(left.toPrecision(3))} TB`;
}

export function plural(count: number, noun: string): string {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

/** Whether a value is one of W&B's media: an image, a table, a histogram, ... */
export function hasType(value: unknown): value is { _type: string } {
  return typeof value === "object" && value !== null && typeof (value as { _type: unknown })._type === "string";
}
