// The table of a project's runs, with search, columns and what can be done to runs.

import { useMemo, useState } from "preact/hooks";
import { hovered } from "../chart/plot";
import { Tag } from "../components/Badge";
import { Icon } from "../components/Icon";
import { Link } from "../components/Link";
import { Popover } from "../components/Menu";
import { Empty } from "../components/States";
import { Table, useColumns, useFocusOnArrows, type Column } from "../components/Table";
import { colourOf } from "../colours";
import { formatNumber, plural } from "../format";
import { useObserved } from "../observe";
import { pathOf } from "../root";
import { changeQuery, navigate } from "../router";
import { theme } from "../theme";
import { labelOf, OFFERED_COLUMNS, runColumn, shortText, ValueCell } from "./columns";
import { reader } from "./fields";
import { ARCHIVED, RowMenu, SelectionBar, type Editing } from "./RunActions";
import type { Run } from "./runs";
import type { Group, ProjectData } from "./useProject";
import { change, isDrawn, type ProjectView } from "./view";

interface Props {
  data: ProjectData;
  view: ProjectView;
  entity: string;
  project: string;
  editing: Editing;
}

/** A row of the table: a run, or the head of a group. */
type Row = { kind: "run"; run: Run } | { kind: "group"; group: Group; means: Record<string, number | null>; isOpen: boolean };

export function RunsPanel(props: Props) {
  const { data, view, editing } = props;
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const [widths, setWidths] = useState<Record<string, number>>({});
  const colours = useObserved(theme);
  const pointed = useObserved(hovered);
  useFocusOnArrows();
  const rows = useMemo(() => rowsOf(data, closed), [data.matches, data.groups, closed, data.columns]);
  const columns = useColumns<Row>(
    () => [nameColumn(props, colours, widths, (label) => setClosed(toggled(closed, label))), ...data.columns.map((name) => valueColumn(name, data, widths))],
    [data.columns, data.keys, colours, view.hidden, view.only, view.pinned, editing.selected, widths, closed],
  );
  const hidden = view.only ? data.matches.filter((run) => !isDrawn(view, run.key)).length : view.hidden.size;
  return (
    <section class="runs" aria-label="Runs">
      <div class="tools">
        <SearchField data={data} view={view} />
        <ColumnChoice data={data} view={view} />
      </div>
      <div class="runs-count">
        <span>
          {data.matches.length === data.runs.length ? plural(data.runs.length, "run") : `${data.matches.length.toLocaleString("en")} of ${plural(data.runs.length, "run")}`}
        </span>
        {hidden > 0 && (
          <button class="link" onClick={change.allDrawn}>
            show {hidden} hidden
          </button>
        )}
        {data.archived > 0 && (
          <button class="link" onClick={() => changeQuery({ q: `tag = ${ARCHIVED}` })}>
            {data.archived} archived
          </button>
        )}
        <button class="link" onClick={editing.showTrash}>
          trash
        </button>
        {data.groups && <span class="faint">{plural(data.groups.length, "group")}</span>}
      </div>
      <Table<Row>
        label="Runs"
        columns={columns}
        rows={rows}
        rowKey={(row) => (row.kind === "run" ? row.run.key : `group ${row.group.label}`)}
        sort={view.sort}
        onSort={change.sort}
        onWidth={(name, width) => setWidths({ ...widths, [name]: width })}
        onHover={(row) => hovered.set(row === null ? null : row.kind === "run" ? row.run.key : row.group.label)}
        onOpen={(row) => row.kind === "run" && navigate(`${pathOf(props.entity, props.project, "runs", row.run.id)}`)}
        onToggle={(row) => row.kind === "run" && editing.toggle(row.run.key)}
        onKey={(row, key) => {
          if (row.kind !== "run") return false;
          if (key === "h") change.drawn(view, row.run.key);
          else if (key === "p") change.pinned(toggled(view.pinned, row.run.key));
          else return false;
          return true;
        }}
        rowClass={(row) => (row.kind === "group" ? "group-row" : `${editing.selected.has(row.run.key) ? "chosen" : ""}${pointed === row.run.key ? " hovered" : ""}`)}
        empty={
          data.isLoaded &&
          (data.runs.length ? (
            <Empty what="No runs match.">
              <button onClick={() => changeQuery({ q: null })}>Show all</button>
            </Empty>
          ) : (
            <Empty what="No runs yet" command={`runyard run --project ${props.project} -- python train.py`} />
          ))
        }
      />
      <SelectionBar data={data} editing={editing} entity={props.entity} project={props.project} />
    </section>
  );
}

function toggled<T>(set: ReadonlySet<T>, item: T): Set<T> {
  const next = new Set(set);
  if (!next.delete(item)) next.add(item);
  return next;
}

function rowsOf(data: ProjectData, closed: ReadonlySet<string>): Row[] {
  if (!data.groups) return data.matches.map((run) => ({ kind: "run", run }));
  const place = new Map(data.matches.map((run, turn) => [run.key, turn]));
  return data.groups.flatMap((group): Row[] => {
    const runs = group.runs.filter((key) => place.has(key)).sort((a, b) => place.get(a)! - place.get(b)!);
    const members = runs.map((key) => data.matches[place.get(key)!]!);
    if (!members.length) return [];
    const isOpen = !closed.has(group.label);
    const head: Row = { kind: "group", group: { ...group, runs }, means: meansOf(members, data.columns), isOpen };
    return isOpen ? [head, ...members.map((run): Row => ({ kind: "run", run }))] : [head];
  });
}

function meansOf(runs: Run[], columns: string[]): Record<string, number | null> {
  const means: Record<string, number | null> = {};
  for (const name of columns) {
    if (!/^(summary|best)\./.test(name) && !runColumn(name)?.isNumber) continue;
    const read = reader(name);
    const values = runs.map(read).filter((value): value is number => typeof value === "number");
    means[name] = values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null;
  }
  return means;
}

function nameColumn({ data, view, entity, project, editing }: Props, colours: "light" | "dark", widths: Record<string, number>, toggle: (label: string) => void): Column<Row> {
  const isAll = data.matches.length > 0 && editing.selected.size >= data.matches.length;
  return {
    name: "name",
    label: "Name",
    width: widths.name ?? 216,
    held: true,
    sortable: true,
    brief: (row) => (row.kind === "run" ? row.run.name : row.group.label),
    head: () => (
      <input
        type="checkbox"
        aria-label="Select all runs"
        checked={isAll}
        onChange={() => editing.select(isAll ? [] : data.matches.map((run) => run.key))}
      />
    ),
    cell: (row) => {
      if (row.kind === "group") {
        const { group, isOpen } = row;
        return (
          <>
            <button class="quiet fold" tabIndex={-1} aria-label={isOpen ? "Close the group" : "Open the group"} aria-expanded={isOpen} onClick={() => toggle(group.label)}>
              <Icon name={isOpen ? "down" : "right"} size={12} />
            </button>
            <span class="swatch" style={{ background: colourOf(group.turn, colours) }} />
            <span class="words strong" title={group.label}>
              {group.label}
            </span>
            <span class="faint">{group.runs.length}</span>
          </>
        );
      }
      const { run } = row;
      const isHidden = !isDrawn(view, run.key);
      return (
        <>
          <input type="checkbox" tabIndex={-1} aria-label={`Select ${run.name}`} checked={editing.selected.has(run.key)} onChange={() => editing.toggle(run.key)} />
          <button
            class="eye"
            tabIndex={-1}
            aria-label={isHidden ? `Draw ${run.name}` : `Do not draw ${run.name}`}
            title={isHidden ? "Not drawn" : "Drawn"}
            onClick={() => change.drawn(view, run.key)}
          >
            <span class={`swatch${isHidden ? " off" : ""}`} style={isHidden ? {} : { background: colourOf(run.key, colours) }} />
          </button>
          <Link to={pathOf(entity, project, "runs", run.id)} class="words run-link" title={run.name} tabIndex={-1}>
            {run.name}
          </Link>
          {run.tags.slice(0, 2).map((tag) => (
            <Tag text={tag} />
          ))}
          {view.pinned.has(run.key) && <Icon name="pin" size={12} />}
          <span class="row-tools">
            <RowMenu run={run} view={view} editing={editing} />
          </span>
        </>
      );
    },
  };
}

function valueColumn(name: string, data: ProjectData, widths: Record<string, number>): Column<Row> {
  const read = reader(name);
  const key = name.startsWith("config.") ? data.keys?.config.find((key) => key.name === name.slice(7)) : data.keys?.summary.find((key) => key.name === name.slice(8));
  const own = runColumn(name);
  const isNumber = own?.isNumber ?? (key?.kind === "number" || name.startsWith("best."));
  return {
    name,
    label: labelOf(name, data.keys?.ranked),
    title: name,
    width: widths[name] ?? own?.width ?? Math.min(150, Math.max(isNumber ? 84 : 100, 26 + labelOf(name, data.keys?.ranked).length * 7)),
    number: isNumber,
    sortable: true,
    isLowBest: isLowBest(name, data.keys),
    brief: (row) => (row.kind === "run" ? shortText(name, read(row.run)) : ""),
    cell: (row) => {
      if (row.kind === "group") {
        const mean = row.means[name];
        const value = row.group.values[name];
        if (typeof mean === "number") return <span title="mean of the group">{own?.text ? own.text(mean) : formatNumber(mean)}</span>;
        return <span>{value === undefined ? "" : shortText(name, value)}</span>;
      }
      return <ValueCell name={name} run={row.run} value={read(row.run)} />;
    },
  };
}

/** By a sweep's goal, by `define_metric(goal="minimize")`, or because the column is a minimum. */
function isLowBest(name: string, keys: ProjectData["keys"]): boolean {
  const metric = name.replace(/^(summary|best)\./, "");
  return /\.min$/.test(metric) || keys?.ranked[metric] === "minimize" || keys?.defined?.[metric.replace(/\.best$/, "")]?.goal === "minimize";
}

function SearchField({ data, view }: { data: ProjectData; view: ProjectView }) {
  return (
    <div class="search">
      <Icon name="search" size={14} />
      <input
        type="search"
        placeholder="Search, or lr >= 0.01 and state = finished"
        aria-label="Search and filter runs"
        aria-invalid={!!data.filter.error}
        value={view.words}
        spellcheck={false}
        onInput={(event) => changeQuery({ q: event.currentTarget.value })}
      />
      {data.filter.error && (
        <span class="search-error" role="alert">
          {data.filter.error}
        </span>
      )}
    </div>
  );
}

function ColumnChoice({ data, view }: { data: ProjectData; view: ProjectView }) {
  const [words, setWords] = useState("");
  const names = [...OFFERED_COLUMNS, ...(data.keys?.config ?? []).map((key) => `config.${key.name}`), ...Object.keys(data.keys?.ranked ?? {}).map((key) => `best.${key}`), ...(data.keys?.summary ?? []).map((key) => `summary.${key.name}`)];
  const wanted = words.toLowerCase();
  const toggle = (name: string) => change.columns(data.columns.includes(name) ? data.columns.filter((column) => column !== name) : [...data.columns, name]);
  return (
    <Popover label="Columns" button={<Icon name="columns" />}>
      {() => (
        <div class="choice">
          <input type="text" placeholder="Find a column" aria-label="Find a column" value={words} onInput={(event) => setWords(event.currentTarget.value)} />
          <div class="choice-list">
            {names
              .filter((name) => name.toLowerCase().includes(wanted))
              .slice(0, 300)
              .map((name) => (
                <label>
                  <input type="checkbox" checked={data.columns.includes(name)} onChange={() => toggle(name)} />
                  <span class="words">{labelOf(name, data.keys?.ranked)}</span>
                  <span class="faint right">{name.startsWith("config.") ? "config" : name.startsWith("summary.") ? "summary" : ""}</span>
                </label>
              ))}
          </div>
          <button class="quiet" disabled={!view.columns} onClick={() => change.columns(null)}>
            Reset
          </button>
        </div>
      )}
    </Popover>
  );
}
