// Which line is which run: a row over a chart of a few lines, all of them in full screen.

import type { Line } from "../chart/lines";
import { inOrder } from "../chart/lines";
import { hovered } from "../chart/plot";

// More names than these are cut off in a row, and the table beside it has all of them.
const FEW = 8;

export function Legend({ lines, isWhole }: { lines: readonly Line[]; isWhole: boolean }) {
  if (lines.length < 2 || (!isWhole && lines.length > FEW)) return null;
  return (
    <ul class={`chart-legend${isWhole ? " whole" : ""}`} aria-label="Lines">
      {inOrder(lines).map((line) => (
        <li key={line.key} title={line.label} onMouseEnter={() => hovered.set(line.key)} onMouseLeave={() => hovered.set(null)}>
          <span class="swatch" style={{ background: line.colour }} />
          <span class="words">{line.label}</span>
        </li>
      ))}
    </ul>
  );
}
