// Everything that the project page knows: the runs, their names, and what of it is shown.

import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { post, type ApiError } from "../api";
import { useLive } from "../live";
import { summaryName } from "../format";
import { pathOf } from "../root";
import { USUAL_COLUMNS } from "./columns";
import type { ChartState } from "./curves";
import { columnsOf, comparer } from "./fields";
import { parseFilter, type Filter } from "./filter";
import { useNames } from "./names";
import { NO_COLUMNS, RunList, type Keys, type Run } from "./runs";
import type { ProjectView } from "./view";

export interface Group {
  label: string;
  values: Record<string, unknown>;
  runs: number[];
  /** Its place among the groups, which gives it its colour. */
  turn: number;
}

export interface ProjectData {
  entity: string;
  project: string;
  place: string;
  path: string;
  list: RunList;
  keys: Keys | null;
  /** What there is instead of `keys`. */
  namesState: ChartState;
  runs: Run[];
  /** What the search leaves, in the table's order, pinned ones first. */
  matches: Run[];
  filter: Filter;
  columns: string[];
  groups: Group[] | null;
  /** How many runs the archive keeps out of sight. */
  archived: number;
  error: ApiError | null;
  isLoaded: boolean;
  /** Runs with new points, by how often that was told. */
  grown: { turn: number; runs: number[] };
  /** The page changed a run itself. */
  changed: () => void;
  again: () => void;
}

const SHOWN_CONFIG = 5;
const SHOWN_SUMMARY = 6;
const SHOWN_RANKED = 2;
// Up to here every column is fetched at once, so that sorting and searching need no question.
const SMALL = 2_000;
const MOST_COLUMNS = 90;
// A metric that a run begins to log has its chart after so long.
const BETWEEN_KEYS = 5_000;

function defaultColumns(keys: Keys | null): string[] {
  if (!keys) return [];
  const config = keys.config.filter((key) => key.varies && key.kind !== "other").slice(0, SHOWN_CONFIG);
  const taken = new Set(config.map((key) => key.name));
  const ranked = Object.keys(keys.ranked).slice(0, SHOWN_RANKED);
  // As `runyard runs` has it: what sweeps rank by, then what `define_metric(summary=...)` names.
  const turn = (name: string) => (ranked.includes(name) ? 0 : summaryName(name) !== name ? 1 : 2);
  const summary = keys.summary
    .filter((key) => key.kind === "number" && !key.name.startsWith("_") && (key.varies || ranked.includes(key.name)) && !taken.has(key.name) && !keys.defined[key.name]?.hidden)
    .sort((a, b) => turn(a.name) - turn(b.name))
    .slice(0, SHOWN_SUMMARY);
  return [...USUAL_COLUMNS, ...config.map((key) => `config.${key.name}`), ...ranked.map((name) => `best.${name}`), ...summary.map((key) => `summary.${key.name}`)];
}

export function useProject(entity: string, project: string, view: ProjectView): ProjectData {
  const place = `${entity}/${project}`;
  const path = `api/projects/${pathOf(entity, project)}`;
  const list = useMemo(() => new RunList(path), [path]);
  const { keys, state: namesState, ask: askNames } = useNames(entity, project);
  const [error, setError] = useState<ApiError | null>(null);
  const [turn, setTurn] = useState(0);
  const [isLoaded, setLoaded] = useState(false);
  const [grown, setGrown] = useState<{ turn: number; runs: number[] }>({ turn: 0, runs: [] });
  const filter = useMemo(() => parseFilter(view.words), [view.words]);
  const columns = useMemo(() => view.columns ?? defaultColumns(keys), [view.columns, keys]);
  const changed = useCallback(() => setTurn((count) => count + 1), []);

  // At first the runs alone, beside their keys' names: charts can begin with that.
  const loadBoth = useCallback(() => {
    setError(null);
    const first = askNames();
    const shown = () => {
      setLoaded(true);
      changed();
    };
    list.load(NO_COLUMNS, shown).then(() => {
      // What was logged between the two answers is no news any more: a run's first row may be that.
      void first.then((names) => names?.metrics.length === 0 && loadKeys());
    }, setError);
  }, [askNames, list]);
  useEffect(loadBoth, [loadBoth]);

  const wanted = useMemo(() => {
    if (!keys || !isLoaded) return null;
    const names = new Set([...columns, ...filter.fields, view.sort.name]);
    const wanted = columnsOf(names);
    if (list.total <= SMALL) {
      keys.config.slice(0, MOST_COLUMNS).forEach((key) => wanted.config.push(key.name));
      keys.summary.slice(0, MOST_COLUMNS).forEach((key) => wanted.summary.push(key.name));
      wanted.best.push(...Object.keys(keys.ranked).slice(0, SHOWN_RANKED));
    }
    return { config: [...new Set(wanted.config)], summary: [...new Set(wanted.summary)], best: [...new Set(wanted.best)] };
  }, [keys, isLoaded, columns.join(), filter.fields.join(), view.sort.name]);
  const keysTimer = useRef(0);
  const latest = useRef(wanted);
  latest.current = wanted;
  const name = wanted && JSON.stringify(wanted);
  useEffect(() => {
    if (wanted) list.load(wanted, changed).catch(setError);
  }, [name]);

  useLive({ project: place }, isLoaded ? list.revision : null, (news) => {
    if (news.whole) return loadBoth();
    if (news.history?.length) setGrown((old) => ({ turn: old.turn + 1, runs: news.history }));
    if (news.runs?.length || news.deleted?.length) {
      void list.update(latest.current ?? NO_COLUMNS).then((any) => any && changed(), () => {});
    }
    // New runs may bring new names, and so may runs that go on.
    if (news.runs?.some((key) => !list.find(key))) loadKeys();
    else if (news.history?.length && !keysTimer.current) keysTimer.current = window.setTimeout(loadKeys, keys?.metrics.length ? BETWEEN_KEYS : 0);
  });
  const loadKeys = () => {
    clearTimeout(keysTimer.current);
    keysTimer.current = 0;
    void askNames();
  };
  useEffect(() => () => clearTimeout(keysTimer.current), [path]);

  const runs = useMemo(() => list.runs, [list, turn]);
  // Archived runs are out of sight until the search names their tag.
  const seesArchive = /archived/i.test(view.words);
  const matches = useMemo(() => {
    const shown = runs.filter((run) => filter.test(run) && (seesArchive || !run.tags.includes("archived"))).sort(comparer(view.sort.name, view.sort.descending));
    if (!view.pinned.size) return shown;
    return [...shown.filter((run) => view.pinned.has(run.key)), ...shown.filter((run) => !view.pinned.has(run.key))];
  }, [runs, filter, seesArchive, view.sort.name, view.sort.descending, view.pinned]);
  const archived = useMemo(() => (seesArchive ? 0 : runs.filter((run) => run.tags.includes("archived")).length), [runs, seesArchive]);
  const groups = useGroups(path, view.group, matches, runs.length);
  return { entity, project, place, path, list, keys, namesState, runs, matches, filter, columns, groups, archived, error, isLoaded, grown, changed, again: loadBoth };
}

/** `!seed,host`: by the whole config but these; `config.lr,state`: by these. */
function useGroups(path: string, group: string, matches: Run[], all: number): Group[] | null {
  const [groups, setGroups] = useState<Group[] | null>(null);
  const keys = useMemo(() => matches.map((run) => run.key).sort((a, b) => a - b), [matches]);
  const name = keys.join();
  useEffect(() => {
    if (!group) {
      setGroups(null);
      return;
    }
    let over = false;
    const isExcept = group.startsWith("!");
    const fields = (isExcept ? group.slice(1) : group).split(",").filter(Boolean);
    const body = { runs: keys.length === all ? null : keys, ...(isExcept ? { except: fields } : { by: fields }) };
    post<{ groups: Group[] }>(`${path}/groups`, body).then(
      (answer) => !over && setGroups(answer.groups.map((group, turn) => ({ ...group, turn }))),
      () => !over && setGroups(null),
    );
    return () => {
      over = true;
    };
  }, [path, group, name]);
  return groups;
}
