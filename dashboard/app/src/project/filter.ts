// What is typed into the search field: words, and conditions on anything that a run has.
//
//   resnet                      a word of the name, the id, the tags or the notes
//   lr >= 0.01 and state = finished
//   val/loss < 0.3 or not (tag = old)
//   name ~ "^seed"              a pattern
//
// A mistake is told with the place where it is; until it is mended, everything is shown.

import { soughtReader } from "./fields";
import type { Run } from "./runs";

export type Test = (run: Run) => boolean;

export interface Filter {
  test: Test;
  /** The fields that it reads. */
  fields: string[];
  error: string | null;
}

interface Token {
  text: string;
  kind: "word" | "quoted" | "operator" | "open" | "close";
  at: number;
}

const TOKEN = /\s*(?:("(?:[^"\\]|\\.)*")|(>=|<=|!=|==|=|<|>|!~|~)|(\()|(\))|([^\s()<>=!~"]+))/y;

class Mistake extends Error {}

export function parseFilter(text: string): Filter {
  const fields: string[] = [];
  try {
    const tokens = tokenize(text);
    if (!tokens.length) return { test: () => true, fields, error: null };
    const parser = new Parser(tokens, fields);
    return { test: parser.whole(), fields, error: null };
  } catch (error) {
    if (!(error instanceof Mistake)) throw error;
    return { test: () => true, fields, error: error.message };
  }
}

function tokenize(text: string): Token[] {
  const tokens: Token[] = [];
  const whole = text.trimEnd();
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < whole.length) {
    const at = TOKEN.lastIndex;
    const match = TOKEN.exec(whole);
    if (!match) throw new Mistake(`cannot read ${JSON.stringify(whole.slice(at, at + 12).trim())}`);
    const [, quoted, operator, open, close, word] = match;
    if (quoted) tokens.push({ text: unquoted(quoted), kind: "quoted", at });
    else if (operator) tokens.push({ text: operator === "==" ? "=" : operator, kind: "operator", at });
    else if (open) tokens.push({ text: "(", kind: "open", at });
    else if (close) tokens.push({ text: ")", kind: "close", at });
    else tokens.push({ text: word!, kind: "word", at });
  }
  return tokens;
}

function unquoted(text: string): string {
  return text.slice(1, -1).replace(/\\(.)/g, "$1");
}

class Parser {
  private place = 0;

  constructor(
    private readonly tokens: Token[],
    private readonly fields: string[],
  ) {}

  whole(): Test {
    const test = this.either();
    const rest = this.tokens[this.place];
    if (rest) throw new Mistake(`${JSON.stringify(rest.text)} is one too many`);
    return test;
  }

  private either(): Test {
    let test = this.both();
    while (this.takes("or")) {
      const [first, second] = [test, this.both()];
      test = (run) => first(run) || second(run);
    }
    return test;
  }

  private both(): Test {
    let test = this.single();
    // Two conditions beside each other both hold, with or without the word.
    while (this.takes("and") || this.goesOn()) {
      const [first, second] = [test, this.single()];
      test = (run) => first(run) && second(run);
    }
    return test;
  }

  private goesOn(): boolean {
    const next = this.tokens[this.place];
    return !!next && next.kind !== "close" && !(next.kind === "word" && next.text.toLowerCase() === "or");
  }

  private single(): Test {
    if (this.takes("not")) {
      const test = this.single();
      return (run) => !test(run);
    }
    const token = this.tokens[this.place++];
    if (!token) throw new Mistake("something is missing at the end");
    if (token.kind === "open") {
      const test = this.either();
      if (this.tokens[this.place++]?.kind !== "close") throw new Mistake("a ) is missing");
      return test;
    }
    if (token.kind === "operator" || token.kind === "close") throw new Mistake(`what stands before ${token.text}?`);
    if (this.tokens[this.place]?.kind === "operator") return this.condition(token.text);
    return containing(token.text);
  }

  private condition(field: string): Test {
    const operator = this.tokens[this.place++]!.text;
    const value = this.tokens[this.place++];
    if (!value || (value.kind !== "word" && value.kind !== "quoted")) throw new Mistake(`${field} ${operator} what?`);
    this.fields.push(field);
    return comparing(soughtReader(field), operator, value.text, value.kind === "quoted");
  }

  private takes(word: string): boolean {
    const next = this.tokens[this.place];
    if (next?.kind !== "word" || next.text.toLowerCase() !== word) return false;
    this.place++;
    return true;
  }
}

function containing(word: string): Test {
  const wanted = word.toLowerCase();
  return (run) =>
    run.name.toLowerCase().includes(wanted) ||
    run.id.toLowerCase().includes(wanted) ||
    run.tags.some((tag) => tag.toLowerCase().includes(wanted)) ||
    (run.notes ?? "").toLowerCase().includes(wanted);
}

function comparing(read: (run: Run) => unknown, operator: string, text: string, isQuoted: boolean): Test {
  if (operator === "~" || operator === "!~") {
    const pattern = patternOf(text);
    return (run) => some(read(run), (value) => pattern.test(asText(value))) === (operator === "~");
  }
  const number = !isQuoted && text !== "" ? Number(text) : NaN;
  const isNumber = !Number.isNaN(number);
  if (operator === "=" || operator === "!=") {
    const wanted = text.toLowerCase();
    const same = (value: unknown) =>
      isNumber && typeof value === "number" ? value === number : asText(value).toLowerCase() === wanted;
    return (run) => some(read(run), same) === (operator === "=");
  }
  if (!isNumber) throw new Mistake(`${operator} needs a number, not ${JSON.stringify(text)}`);
  const holds: Record<string, (value: number) => boolean> = {
    "<": (value) => value < number,
    "<=": (value) => value <= number,
    ">": (value) => value > number,
    ">=": (value) => value >= number,
  };
  const test = holds[operator]!;
  return (run) => some(read(run), (value) => typeof value === "number" && test(value));
}

function patternOf(text: string): RegExp {
  try {
    return new RegExp(text, "i");
  } catch {
    throw new Mistake(`${JSON.stringify(text)} is not a pattern`);
  }
}

/** Whether it holds for a value, or for one of a list, as tags are. */
function some(value: unknown, test: (value: unknown) => boolean): boolean {
  return Array.isArray(value) ? value.some(test) : test(value);
}

function asText(value: unknown): string {
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
