// Deleting runs: a question with their number and names, and the trash, from where they come back.

import { useEffect, useState } from "preact/hooks";
import { get, post } from "../api";
import { Dialog } from "../components/Dialog";
import { attempt, say, sayWithUndo } from "../components/Toasts";
import { formatAgo, formatDuration, plural } from "../format";
import type { ChangedRuns, TrashedRun } from "../shapes";

const SHOWN_NAMES = 12;

export async function restoreRuns(keys: readonly number[]): Promise<boolean> {
  const restored = await attempt(post<ChangedRuns>("api/trash/restore", { runs: keys }));
  if (restored) say(`Restored ${plural(restored.runs.length, "run")}`);
  return restored !== null;
}

/** Into the trash; `project` is the address of its API. */
export async function trashRuns(project: string, keys: readonly number[]): Promise<boolean> {
  const trashed = await attempt(post<ChangedRuns>(`${project}/trash`, { runs: keys }));
  if (trashed) sayWithUndo(`${plural(trashed.runs.length, "run")} moved to the trash`, () => void restoreRuns(trashed.runs));
  return trashed !== null;
}

/** Asked before runs are deleted: how many, and which. */
export function ConfirmDelete(props: { runs: readonly { key: number; name: string }[]; close: () => void; agree: () => void }) {
  const { runs } = props;
  return (
    <Dialog title={`Delete ${plural(runs.length, "run")}?`} close={props.close}>
      <ul class="names">
        {runs.slice(0, SHOWN_NAMES).map((run) => (
          <li key={run.key}>{run.name}</li>
        ))}
        {runs.length > SHOWN_NAMES && <li class="faint">and {runs.length - SHOWN_NAMES} more</li>}
      </ul>
      <p>They stay in the trash for 30 days. A run that is still running is told to stop sending.</p>
      <div class="dialog-buttons">
        <button onClick={props.close}>Cancel</button>
        <button class="dangerous" autofocus onClick={props.agree}>
          Delete {plural(runs.length, "run")}
        </button>
      </div>
    </Dialog>
  );
}

export function TrashDialog({ project, close }: { project: string; close: () => void }) {
  const [runs, setRuns] = useState<TrashedRun[] | null>(null);
  const [chosen, setChosen] = useState<ReadonlySet<number>>(new Set());
  const load = () => void attempt(get<TrashedRun[]>(`${project}/trash`)).then((listed) => listed && setRuns(listed));
  useEffect(load, [project]);
  const toggle = (key: number) => {
    const next = new Set(chosen);
    if (!next.delete(key)) next.add(key);
    setChosen(next);
  };
  const restore = async () => {
    if (await restoreRuns([...chosen])) setChosen(new Set());
    load();
  };
  return (
    <Dialog title="Trash" close={close}>
      {runs === null && <p class="faint">Loading…</p>}
      {runs?.length === 0 && <p class="faint">The trash is empty. Deleted runs stay here for 30 days.</p>}
      {!!runs?.length && (
        <>
          <div class="choice-list names">
            {runs.map((run) => (
              <label key={run.key}>
                <input type="checkbox" checked={chosen.has(run.key)} onChange={() => toggle(run.key)} />
                <span class="words">{run.name}</span>
                <span class="faint right">
                  deleted {formatAgo(run.deleted_at)}
                  {run.deleted_by && ` by ${run.deleted_by}`}, gone in {formatDuration(Math.max(0, run.gone_at - Date.now() / 1000))}
                </span>
              </label>
            ))}
          </div>
          <div class="dialog-buttons">
            <button onClick={() => setChosen(new Set(chosen.size === runs.length ? [] : runs.map((run) => run.key)))}>{chosen.size === runs.length ? "Select none" : "Select all"}</button>
            <button class="primary" disabled={!chosen.size} onClick={() => void restore()}>
              Restore {chosen.size ? plural(chosen.size, "run") : ""}
            </button>
          </div>
        </>
      )}
    </Dialog>
  );
}
