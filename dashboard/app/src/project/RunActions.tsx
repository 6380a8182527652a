// What can be done to runs: one by its menu, many by selecting them.

import { useMemo, useState } from "preact/hooks";
import { del, patch, post } from "../api";
import { Dialog } from "../components/Dialog";
import { Icon } from "../components/Icon";
import { Menu, Popover } from "../components/Menu";
import { afterAWhile, attempt } from "../components/Toasts";
import { plural } from "../format";
import type { Run } from "./runs";
import { isAlive } from "./runs";
import type { ProjectData } from "./useProject";
import { change, type ProjectView } from "./view";

export interface Editing {
  selected: ReadonlySet<number>;
  gone: ReadonlySet<number>;
  select: (keys: number[]) => void;
  toggle: (key: number) => void;
  rename: (run: Run) => void;
  tag: (keys: number[], add: string[], remove: string[]) => Promise<void>;
  remove: (keys: number[]) => void;
  stop: (run: Run) => void;
}

/** The selection, and the changes that the page makes. */
export function useEditing(data: ProjectData): { editing: Editing; dialog: preact.JSX.Element | null } {
  const [selected, setSelected] = useState<ReadonlySet<number>>(new Set());
  const [gone, setGone] = useState<ReadonlySet<number>>(new Set());
  const [renamed, setRenamed] = useState<Run | null>(null);
  const editing = useMemo<Editing>(() => {
    const edited = (key: number, next: Partial<Run>) => {
      data.list.patch(key, next);
      data.changed();
    };
    return {
      selected,
      gone,
      select: (keys) => setSelected(new Set(keys)),
      toggle: (key) => {
        const next = new Set(selected);
        if (!next.delete(key)) next.add(key);
        setSelected(next);
      },
      rename: setRenamed,
      tag: async (keys, add, remove) => {
        const done = await attempt(post(`${data.path}/tags`, { runs: keys, add, remove }));
        if (!done) return;
        for (const key of keys) {
          const tags = (data.list.find(key)?.tags ?? []).filter((tag) => !remove.includes(tag));
          edited(key, { tags: [...new Set([...tags, ...add])] });
        }
      },
      remove: (keys) => {
        setGone((old) => new Set([...old, ...keys]));
        setSelected(new Set());
        afterAWhile(
          `Deleting ${plural(keys.length, "run")}`,
          () => Promise.all(keys.map((key) => del(`api/runs/${key}`))),
          () => setGone((old) => new Set([...old].filter((key) => !keys.includes(key)))),
        );
      },
      stop: (run) => void attempt(post(`api/runs/${run.key}/stop`), `${run.name} was asked to stop`),
    };
  }, [data.list, data.path, data.changed, selected, gone]);
  const dialog = renamed && (
    <Rename
      run={renamed}
      close={() => setRenamed(null)}
      save={(name) => {
        setRenamed(null);
        data.list.patch(renamed.key, { name });
        data.changed();
        void attempt(patch(`api/runs/${renamed.key}`, { name })).then((done) => {
          if (done) return;
          data.list.patch(renamed.key, { name: renamed.name });
          data.changed();
        });
      }}
    />
  );
  return { editing, dialog };
}

export function Rename(props: { run: { name: string }; close: () => void; save: (name: string) => void }) {
  return (
    <Dialog title="Rename" close={props.close}>
      <form
        class="rename"
        onSubmit={(event) => {
          event.preventDefault();
          const name = String(new FormData(event.currentTarget).get("name") ?? "").trim();
          if (name) props.save(name);
        }}
      >
        <input name="name" aria-label="Name" value={props.run.name} required maxLength={128} autofocus />
        <button class="primary">Rename</button>
      </form>
    </Dialog>
  );
}

/** A mere button until it is pressed: ten thousand rows need no ten thousand menus. */
export function RowMenu(props: { run: Run; view: ProjectView; editing: Editing }) {
  const [isWanted, setWanted] = useState(false);
  if (isWanted) return <OpenMenu {...props} />;
  return (
    <button class="quiet" aria-label={`${props.run.name}: more`} aria-expanded={false} onClick={() => setWanted(true)}>
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
        { says: "Rename", icon: "edit", act: () => editing.rename(run) },
        ...(isAlive(run) ? [{ says: "Ask to stop", icon: "close" as const, act: () => editing.stop(run) }] : []),
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
  const keys = [...editing.selected].filter((key) => data.list.find(key) && !editing.gone.has(key));
  if (!keys.length) return null;
  const others = data.found.map((run) => run.key).filter((key) => !editing.selected.has(key));
  return (
    <div class="selection" role="toolbar" aria-label="Selected runs">
      <strong>{keys.length} selected</strong>
      <button disabled={keys.length < 2 || keys.length > 12} title={keys.length > 12 ? "Up to 12 runs side by side" : ""} onClick={() => change.compare(keys)}>
        <Icon name="compare" size={14} /> Compare
      </button>
      <button onClick={() => change.hidden(others)}>
        <Icon name="eye" size={14} /> Draw only these
      </button>
      <TagChoice data={data} keys={keys} editing={editing} />
      <button class="dangerous" onClick={() => editing.remove(keys)}>
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
