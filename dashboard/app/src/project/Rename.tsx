// Other names for runs: one is typed, many follow a pattern such as "lr {config.lr} seed {config.seed}".

import { useState } from "preact/hooks";
import { get } from "../api";
import { Dialog } from "../components/Dialog";
import { exactText, plural } from "../format";
import type { RunColumns } from "../shapes";
import type { Run } from "./runs";

const LONGEST = 128;
const SHOWN = 3;
const FIELD = /\{(n|name|id|group|(config|summary)\.([^{}]+))\}/g;

type Look = (run: Run, part: "config" | "summary", key: string) => unknown;

/** The names that a pattern gives. Values that the page does not have are asked for. */
export async function nameAll(path: string, runs: readonly Run[], pattern: string): Promise<string[]> {
  if (runs.length === 1) return [pattern];
  const wanted: Record<"config" | "summary", string[]> = { config: [], summary: [] };
  for (const [, , part, key] of pattern.matchAll(FIELD)) if (part) wanted[part as "config" | "summary"].push(key!);
  if (!wanted.config.length && !wanted.summary.length) return names(runs, pattern);
  const columns = await get<RunColumns>(`${path}/runs`, { query: wanted });
  const places = new Map((columns.columns.key as number[]).map((key, at) => [key, at]));
  return names(runs, pattern, (run, part, key) => columns[part][key]?.[places.get(run.key) ?? -1]);
}

function names(runs: readonly Run[], pattern: string, look: Look = (run, part, key) => run[part][key]): string[] {
  return runs.map((run, at) => {
    const name = pattern.replace(FIELD, (_whole, word: string, part?: "config" | "summary", key?: string) =>
      part ? exactText(look(run, part, key!)) : word === "n" ? String(at + 1) : String(run[word as "name" | "id" | "group"] ?? ""),
    );
    return name.trim().slice(0, LONGEST) || run.name;
  });
}

export function Rename({ runs, close, save }: { runs: readonly Run[]; close: () => void; save: (pattern: string) => void }) {
  const isOne = runs.length === 1;
  const [pattern, setPattern] = useState(isOne ? runs[0]!.name : "{name}");
  return (
    <Dialog title={isOne ? "Rename" : `Rename ${plural(runs.length, "run")}`} close={close}>
      <form
        class="rename"
        onSubmit={(event) => {
          event.preventDefault();
          if (pattern.trim()) save(pattern.trim());
        }}
      >
        <input aria-label="Name" value={pattern} required maxLength={LONGEST} autofocus onInput={(event) => setPattern(event.currentTarget.value)} />
        <button class="primary">Rename</button>
      </form>
      {!isOne && (
        <div class="faint">
          <p>
            <code>{"{name}"}</code>, <code>{"{n}"}</code> (1, 2, …), <code>{"{id}"}</code>, <code>{"{group}"}</code>, <code>{"{config.KEY}"}</code> and{" "}
            <code>{"{summary.KEY}"}</code> stand for a run's own.
          </p>
          <ul aria-label="New names">
            {names(runs.slice(0, SHOWN), pattern).map((name) => (
              <li>{name}</li>
            ))}
            {runs.length > SHOWN && <li>…</li>}
          </ul>
        </div>
      )}
    </Dialog>
  );
}
