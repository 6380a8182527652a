// What a terminal would have shown: colours and weights of the text between escape sequences.

export interface Piece {
  text: string;
  /** For `class`; colours of our own palette, which follow the theme. */
  look: string;
  /** For colours that a program mixed itself. */
  colour?: string;
}

interface Pen {
  colour: number | string | null;
  ground: number | null;
  bold: boolean;
  dim: boolean;
  italic: boolean;
  underline: boolean;
}

const PLAIN: Pen = { colour: null, ground: null, bold: false, dim: false, italic: false, underline: false };
// CSI sequences, OSC sequences (titles, links), and single escapes.
// eslint-disable-next-line no-control-regex
const ESCAPE = /\x1b(?:\[([0-9;:?]*)([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])/g;

/** A line as pieces of one look each. `pen` carries over from the line before. */
export function pieces(line: string, pen: Pen = { ...PLAIN }): Piece[] {
  const pieces: Piece[] = [];
  let place = 0;
  const put = (text: string) => {
    // eslint-disable-next-line no-control-regex
    const shown = text.replace(/[\x00-\x08\x0b-\x1f\x7f]/g, "");
    if (shown) pieces.push({ text: shown, look: lookOf(pen), colour: typeof pen.colour === "string" ? pen.colour : undefined });
  };
  for (const match of line.matchAll(ESCAPE)) {
    put(line.slice(place, match.index));
    place = match.index + match[0].length;
    if (match[2] === "m") change(pen, match[1] ?? "");
  }
  put(line.slice(place));
  return pieces;
}

/** The text alone, for searching. */
export function plainText(line: string): string {
  return line.replace(ESCAPE, "");
}

/** What is left of a line in which a program went back to the beginning, as progress bars do. */
export function lastTurn(line: string): string {
  const turns = line.replace(/\r+$/, "").split("\r");
  return turns.length === 1 ? turns[0]! : (turns.findLast((turn) => plainText(turn) !== "") ?? "");
}

function change(pen: Pen, text: string): void {
  const codes = text.split(/[;:]/).map(Number);
  for (let place = 0; place < codes.length; place++) {
    const code = codes[place]!;
    if (code === 0) Object.assign(pen, PLAIN);
    else if (code === 1) pen.bold = true;
    else if (code === 2) pen.dim = true;
    else if (code === 3) pen.italic = true;
    else if (code === 4) pen.underline = true;
    else if (code === 22) pen.bold = pen.dim = false;
    else if (code === 23) pen.italic = false;
    else if (code === 24) pen.underline = false;
    else if (code >= 30 && code <= 37) pen.colour = code - 30;
    else if (code >= 90 && code <= 97) pen.colour = code - 82;
    else if (code === 39) pen.colour = null;
    else if (code >= 40 && code <= 47) pen.ground = code - 40;
    else if (code === 49) pen.ground = null;
    else if (code === 38 || code === 48) {
      const [colour, used] = mixed(codes.slice(place + 1));
      if (code === 38) pen.colour = colour;
      place += used;
    }
  }
}

/** `5;n` of 256 colours, or `2;r;g;b`; and how many numbers that took. */
function mixed(codes: number[]): [number | string | null, number] {
  if (codes[0] === 2) return [`rgb(${codes.slice(1, 4).map((part) => part || 0).join(" ")})`, 4];
  if (codes[0] !== 5) return [null, 1];
  const index = codes[1] ?? 0;
  if (index < 16) return [index, 2];
  if (index >= 232) {
    const grey = 8 + (index - 232) * 10;
    return [`rgb(${grey} ${grey} ${grey})`, 2];
  }
  const steps = [0, 95, 135, 175, 215, 255];
  const cube = index - 16;
  return [`rgb(${steps[Math.floor(cube / 36)]} ${steps[Math.floor(cube / 6) % 6]} ${steps[cube % 6]})`, 2];
}

function lookOf(pen: Pen): string {
  const looks: string[] = [];
  if (typeof pen.colour === "number") looks.push(`ansi-${pen.colour}`);
  if (pen.ground !== null) looks.push(`ansi-ground-${pen.ground}`);
  if (pen.bold) looks.push("bold");
  if (pen.dim) looks.push("dim");
  if (pen.italic) looks.push("italic");
  if (pen.underline) looks.push("underline");
  return looks.join(" ");
}
