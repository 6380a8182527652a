// A run keeps its colour for life, in every chart and on every page: it comes from the run's key.
// Keys that follow each other are a golden angle apart on the wheel, so neighbours never look alike.

import type { Theme } from "./theme";

const GOLDEN = 137.508;
const memory = new Map<string, string>();

export function colourOf(key: number, theme: Theme): string {
  const name = `${key} ${theme}`;
  const known = memory.get(name);
  if (known) return known;
  const hue = (key * GOLDEN + 250) % 360;
  const turn = Math.floor(key / 7) % 3;
  const lightness = theme === "dark" ? 0.74 + 0.05 * (turn - 1) : 0.56 + 0.06 * (turn - 1);
  // sRGB has stronger reds than greens and blues of that lightness: weak ones look brown.
  const red = Math.max(0, Math.cos(((hue - 22) * Math.PI) / 180));
  const made = rgb(lightness, (theme === "dark" ? 0.125 : 0.15) * (1 + 0.3 * red), hue);
  memory.set(name, made);
  return made;
}

/** OKLCH in sRGB. Björn Ottosson's matrices, https://bottosson.github.io/posts/oklab/ */
export function rgb(lightness: number, chroma: number, hue: number): string {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const linear = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  return `rgb(${linear.map((value) => Math.round(255 * gamma(value))).join(" ")})`;
}

function gamma(value: number): number {
  const bounded = Math.min(1, Math.max(0, value));
  return bounded <= 0.0031308 ? 12.92 * bounded : 1.055 * bounded ** (1 / 2.4) - 0.055;
}

/** A point on a scale from bad to good, for values as colours. */
export function shade(fraction: number, theme: Theme): string {
  const at = Math.min(1, Math.max(0, fraction));
  return theme === "dark" ? rgb(0.42 + 0.42 * at, 0.13, 290 - 180 * at) : rgb(0.78 - 0.42 * at, 0.14, 110 + 160 * at);
}

export function faded(colour: string, alpha: number): string {
  return colour.replace(/\)$/, ` / ${alpha})`);
}
