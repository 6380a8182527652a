// What differs between two texts, line by line: Myers' greedy algorithm, as `diff` has it.

export interface DiffLine {
  kind: "same" | "out" | "in";
  text: string;
}

// Beyond this many differing lines the rest is shown as replaced.
const LONGEST = 2_000;

export function differences(before: string, after: string): DiffLine[] {
  const [a, b] = [before.split("\n"), after.split("\n")];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const same = (lines: string[]): DiffLine[] => lines.map((text) => ({ kind: "same", text }));
  return [...same(a.slice(0, start)), ...middle(a.slice(start, a.length - end), b.slice(start, b.length - end)), ...same(a.slice(a.length - end))];
}

function middle(a: string[], b: string[]): DiffLine[] {
  const most = Math.min(a.length + b.length, LONGEST);
  const reach = new Map<number, number>([[1, 0]]);
  const history: Map<number, number>[] = [];
  for (let edits = 0; edits <= most; edits++) {
    history.push(new Map(reach));
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      const down = reach.get(diagonal + 1) ?? -1;
      const right = reach.get(diagonal - 1) ?? -1;
      let x = diagonal === -edits || (diagonal !== edits && right < down) ? down : right + 1;
      while (x < a.length && x - diagonal < b.length && a[x] === b[x - diagonal]) x++;
      reach.set(diagonal, x);
      if (x >= a.length && x - diagonal >= b.length) return walkBack(a, b, history, edits);
    }
  }
  return [...a.map((text): DiffLine => ({ kind: "out", text })), ...b.map((text): DiffLine => ({ kind: "in", text }))];
}

function walkBack(a: string[], b: string[], history: Map<number, number>[], edits: number): DiffLine[] {
  const lines: DiffLine[] = [];
  let [x, y] = [a.length, b.length];
  for (let left = edits; left >= 0; left--) {
    const reach = history[left]!;
    const diagonal = x - y;
    const down = reach.get(diagonal + 1) ?? -1;
    const right = reach.get(diagonal - 1) ?? -1;
    const before = diagonal === -left || (diagonal !== left && right < down) ? diagonal + 1 : diagonal - 1;
    const fromX = reach.get(before) ?? 0;
    const fromY = fromX - before;
    while (x > fromX && y > fromY && x > 0 && y > 0) lines.push({ kind: "same", text: a[(x--, y--, x)]! });
    if (left === 0) break;
    if (x === fromX) lines.push({ kind: "in", text: b[--y]! });
    else lines.push({ kind: "out", text: a[--x]! });
  }
  return lines.reverse();
}

/** Without the long stretches in which nothing differs. */
export function condensed(lines: DiffLine[], around = 3): (DiffLine | { kind: "gap"; text: string })[] {
  const near = new Set<number>();
  lines.forEach((line, place) => {
    if (line.kind !== "same") for (let at = place - around; at <= place + around; at++) near.add(at);
  });
  const shown: (DiffLine | { kind: "gap"; text: string })[] = [];
  let skipped = 0;
  lines.forEach((line, place) => {
    if (near.has(place)) {
      if (skipped) shown.push({ kind: "gap", text: `${skipped} lines are the same` });
      skipped = 0;
      shown.push(line);
    } else skipped++;
  });
  return shown;
}
