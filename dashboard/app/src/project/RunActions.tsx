// What can be done to runs: one by its menu, many by selecting them. The selection is of runs that
// the table shows: what the search hides is never changed.

import { useMemo, useState } from "preact/hooks";
import { post } from "../api";
import { Dialog } from "../components/Dialog";
import { Icon } from "../components/Icon";
import { Menu, Popover } from "../components/Menu";
import { attempt, sayWithUndo } from "../components/Toasts";
import { plural } from "../format";
import { saveTable } from "./export";
import type { Run } from "./runs";
import { isAlive } from "./runs";
import { nameAll, Rename } from "./Rename";
import { ConfirmDelete, TrashDialog, trashRuns } from "./Trash";
import type { ProjectData } from "./useProject";
import { change, type ProjectView } from "./view";

export interface Editing {
  /** Those of the runs in sight. */
  selected: ReadonlySet<number>;
  /** Selected runs that the search hides: left alone. */
  unseen: number;
  select: (keys: number[]) => void;
  toggle: (key: number) => void;
  rename: (runs: readonly Run[]) => void;
  tag: (keys: number[], add: string[], remove: string[]) => Promise<void>;
  /** Asks first, with their number and names. */
  remove: (keys: number[]) => void;
  showTrash: () => void;
  archive: (keys: number[]) => void;
  move: (keys: number[]) => void;
  stop: (keys: number[]) => void;
}

/** Runs with this tag are out of sight, unless the search names it. */
export const ARCHIVED = "archived";
type Window = { kind: "rename" | "remove" | "move"; runs: readonly Run[] } | { kind: "trash" };

/** The selection, and the changes that the page makes. */
export function useEditing(data: ProjectData): { editing: Editing; dialog: preact.JSX.Element | null } {
  const [chosen, setChosen] = useState<ReadonlySet<number>>(new Set());
  const [open, setOpen] = useState<Window | null>(null);
  const selected = useMemo(() => new Set(data.matches.filter((run) => chosen.has(run.key)).map((run) => run.key)), [data.matches, chosen]);
  const unseen = useMemo(() => [...chosen].filter((key) => !selected.has(key) && data.list.find(key)).length, [chosen, selected]);
  const close = () => setOpen(null);
  const editing = useMemo<Editing>(() => {
    const edited = (key: number, next: Partial<Run>) => {
      data.list.patch(key, next);
      data.changed();
    };
    const runsOf = (keys: readonly number[]) => keys.flatMap((key) => data.list.find(key) ?? []);
    const changeTags = async (keys: readonly number[], add: string[], remove: string[]) => {
      const done = await attempt(post(`${data.path}/tags`, { runs: keys, add, remove }));
      if (!done) return false;
      for (const key of keys) {
        const tags = (data.list.find(key)?.tags ?? []).filter((tag) => !remove.includes(tag));
        edited(key, { tags: [...new Set([...tags, ...add])] });
      }
      return true;
    };
    return {
      selected,
      unseen,
      select: (keys) => setChosen(new Set(keys)),
      toggle: (key) => {
        const next = new Set(chosen);
        if (!next.delete(key)) next.add(key);
        setChosen(next);
      },
      rename: (runs) => setOpen({ kind: "rename", runs }),
      tag: async (keys, add, remove) => {
        // Back to what each run had: some may have had the tag before.
        const had = add.concat(remove).map((tag) => [tag, runsOf(keys).filter((run) => run.tags.includes(tag)).map((run) => run.key)] as const);
        if (!(await changeTags(keys, add, remove))) return;
        sayWithUndo(`Tags of ${plural(keys.length, "run")} changed`, () => {
          for (const [tag, before] of had) {
            const without = keys.filter((key) => !before.includes(key));
            if (add.includes(tag)) void changeTags(without, [], [tag]);
            else void changeTags(before, [tag], []);
          }
        });
      },
      remove: (keys) => keys.length && setOpen({ kind: "remove", runs: runsOf(keys) }),
      showTrash: () => setOpen({ kind: "trash" }),
      archive: (keys) => {
        const isBack = runsOf(keys).every((run) => run.tags.includes(ARCHIVED));
        // Undo leaves those in the archive that were there before.
        const changed = keys.filter((key) => isBack || !data.list.find(key)?.tags.includes(ARCHIVED));
        const change = (there: boolean) => changeTags(changed, there ? [ARCHIVED] : [], there ? [] : [ARCHIVED]);
        void change(!isBack).then((done) => done && sayWithUndo(`${plural(changed.length, "run")} ${isBack ? "restored" : "archived"}`, () => void change(isBack)));
      },
      move: (keys) => setOpen({ kind: "move", runs: runsOf(keys) }),
      stop: (keys) => void attempt(post(`${data.path}/stop`, { runs: keys }), `${plural(keys.length, "run")} asked to stop`),
    };
  }, [data.list, data.path, data.changed, selected, chosen, unseen]);
  const rename = async (runs: readonly Run[], pattern: string) => {
    close();
    const names = await attempt(nameAll(data.path, runs, pattern));
    if (!names) return;
    const set = async (next: readonly string[]) => {
      const done = await attempt(post(`${data.path}/rename`, { runs: runs.map((run) => run.key), names: next }));
      if (done) runs.forEach((run, at) => data.list.patch(run.key, { name: next[at]! }));
      data.changed();
      return done;
    };
    const before = runs.map((run) => run.name);
    if (await set(names)) sayWithUndo(runs.length > 1 ? `${plural(runs.length, "run")} renamed` : `Renamed to ${names[0]}`, () => void set(before));
  };
  const remove = (runs: readonly Run[]) => {
    close();
    const keys = runs.map((run) => run.key);
    void trashRuns(data.path, keys).then((done) => {
      if (!done) return;
      data.list.remove(keys);
      data.changed();
    });
  };
  const move = (runs: readonly Run[], to: string) => {
    close();
    const keys = runs.map((run) => run.key);
    const [entity = "", project = ""] = data.place.split("/");
    const back = () => void attempt(post(`api/projects/${encodeURIComponent(entity)}/${encodeURIComponent(to)}/move`, { runs: keys, to: project }));
    void attempt(post(`${data.path}/move`, { runs: keys, to })).then((done) => {
      if (!done) return;
      data.list.remove(keys);
      data.changed();
      sayWithUndo(`${plural(keys.length, "run")} moved to ${to}`, back);
    });
  };
  const dialog =
    open?.kind === "rename" ? (
      <Rename runs={open.runs} close={close} save={(pattern) => void rename(open.runs, pattern)} />
    ) : open?.kind === "move" ? (
      <Ask title={`Move ${plural(open.runs.length, "run")} to another project`} label="Project" value="" verb="Move" close={close} save={(name) => move(open.runs, name)} />
    ) : open?.kind === "remove" ? (
      <ConfirmDelete runs={open.runs} close={close} agree={() => remove(open.runs)} />
    ) : open?.kind === "trash" ? (
      <TrashDialog project={data.path} close={close} />
    ) : null;
  return { editing, dialog };
}

/** One word from the user. */
export function Ask(props: { title: string; label: string; value: string; verb: string; close: () => void; save: (name: string) => void }) {
  return (
    <Dialog title={props.title} close={props.close}>
      <form
        class="rename"
        onSubmit={(event) => {
          event.preventDefault();
          const name = String(new FormData(event.currentTarget).get("name") ?? "").trim();
          if (name) props.save(name);
        }}
      >
        <input name="name" aria-label={props.label} value={props.value} required maxLength={128} autofocus />
        <button class="primary">{props.verb}</button>
      </form>
    </Dialog>
  );
}

/** A mere button until it is pressed: ten thousand rows need no ten thousand menus. */
export function RowMenu(props: { run: Run; view: ProjectView; editing: Editing }) {
  const [isWanted, setWanted] = useState(false);
  if (isWanted) return <OpenMenu {...props} />;
  return (
    <button class="quiet" tabIndex={-1} aria-label={`${props.run.name}: more`} aria-expanded={false} onClick={() => setWanted(true)}>
      <Icon name="more" size={14} />
    </button>
  );
}

function OpenMenu({ run, view, editing }: { run: Run; view: ProjectView; editing: Editing }) {
  const isPinned = view.pinned.has(run.key);
  const without = new Set(view.pinned);
  without.delete(run.key);
  return (
    <Menu
      open
      label={`${run.name}: more`}
      button={<Icon name="more" size={14} />}
      items={[
        { says: isPinned ? "Unpin" : "Pin to the top", icon: "pin", act: () => change.pinned(isPinned ? without : [...view.pinned, run.key]) },
        { says: "Rename", icon: "edit", act: () => editing.rename([run]) },
        ...(isAlive(run) ? [{ says: "Ask to stop", icon: "close" as const, act: () => editing.stop([run.key]) }] : []),
        { says: run.tags.includes(ARCHIVED) ? "Take out of the archive" : "Archive", icon: "save", act: () => editing.archive([run.key]) },
        { says: "Delete", icon: "trash", dangerous: true, act: () => editing.remove([run.key]) },
      ]}
    />
  );
}

interface BarProps {
  data: ProjectData;
  editing: Editing;
  entity: string;
  project: string;
}

export function SelectionBar({ data, editing }: BarProps) {
  const keys = [...editing.selected];
  if (!keys.length && !editing.unseen) return null;
  const runs = data.matches.filter((run) => editing.selected.has(run.key));
  const alive = runs.filter(isAlive).map((run) => run.key);
  return (
    <div class="selection" role="toolbar" aria-label="Selected runs">
      <strong>{keys.length} selected</strong>
      {editing.unseen > 0 && <span class="faint">{editing.unseen} more not in sight: left alone</span>}
      <button disabled={keys.length < 2 || keys.length > 12} title={keys.length > 12 ? "Up to 12 runs side by side" : ""} onClick={() => change.compare(keys)}>
        <Icon name="compare" size={14} /> Compare
      </button>
      <button onClick={() => change.only(keys)}>
        <Icon name="eye" size={14} /> Draw only these
      </button>
      <TagChoice data={data} keys={keys} editing={editing} />
      <Menu
        label="More for the selected runs"
        class=""
        button={<Icon name="more" size={14} />}
        items={[
          { says: "Rename", icon: "edit", act: () => editing.rename(runs) },
          { says: runs.length && runs.every((run) => run.tags.includes(ARCHIVED)) ? "Take out of the archive" : "Archive", icon: "save", act: () => editing.archive(keys) },
          { says: "Move to another project", icon: "right", act: () => editing.move(keys) },
          { says: alive.length ? `Ask ${plural(alive.length, "run")} to stop` : "None is running", act: alive.length ? () => editing.stop(alive) : null },
          { says: "Save as CSV", icon: "save", act: () => saveTable("csv", runs, data.columns, data.place, data.keys?.ranked) },
          { says: "Save as LaTeX", icon: "save", act: () => saveTable("tex", runs, data.columns, data.place, data.keys?.ranked) },
        ]}
      />
      <button class="dangerous" disabled={!keys.length} onClick={() => editing.remove(keys)}>
        <Icon name="trash" size={14} /> Delete
      </button>
      <button class="quiet right" aria-label="Select none" onClick={() => editing.select([])}>
        <Icon name="close" size={14} />
      </button>
    </div>
  );
}

function TagChoice({ data, keys, editing }: { data: ProjectData; keys: number[]; editing: Editing }) {
  const known = [...new Set(data.runs.flatMap((run) => run.tags))].sort();
  const has = (tag: string) => keys.every((key) => data.list.find(key)?.tags.includes(tag));
  return (
    <Popover
      label="Tags of the selected runs"
      class=""
      button={
        <>
          <Icon name="tag" size={14} /> Tag
        </>
      }
    >
      {(close) => (
        <div class="choice">
          <form
            onSubmit={(event) => {
              event.preventDefault();
              const tag = String(new FormData(event.currentTarget).get("tag") ?? "").trim();
              if (tag) void editing.tag(keys, [tag], []);
              close();
            }}
          >
            <input name="tag" placeholder="New tag, then ↵" aria-label="New tag" maxLength={64} />
          </form>
          <div class="choice-list">
            {known.map((tag) => (
              <label>
                <input type="checkbox" checked={has(tag)} onChange={() => void (has(tag) ? editing.tag(keys, [], [tag]) : editing.tag(keys, [tag], []))} />
                <span class="words">{tag}</span>
              </label>
            ))}
          </div>
        </div>
      )}
    </Popover>
  );
}
