// Media of the runs that a project shows, side by side: a panel for each name, as charts have one for each metric.

import { useEffect, useMemo, useState } from "preact/hooks";
import { post } from "../api";
import { colourOf } from "../colours";
import { Icon } from "../components/Icon";
import { plural } from "../format";
import { useObserved } from "../observe";
import type { Keys, Run } from "../project/runs";
import { fileAddress } from "../session";
import { theme } from "../theme";
import "../style/blocks.css";
import "../style/media.css";
import { filePath } from "./files";
import { infoOf } from "./info";
import { MediaPanel } from "./MediaPanel";
import { mediaNames, type ChartInfo } from "./values";

// More images than these fit on no screen.
const MOST_RUNS = 8;
// Among so many of the runs that are drawn they are looked for.
const MOST_LOOKED_AT = 1000;

interface Props {
  entity: string;
  project: string;
  runs: readonly Run[];
  media: Keys["media"];
  /** Of the metric filter: names have to hold it. */
  words: string;
  turn: number;
}

export function ProjectMedia({ entity, project, runs, media, words, turn }: Props) {
  const colours = useObserved(theme);
  const [isOpen, setOpen] = useState(true);
  const holders = useHolders(`api/projects/${encodeURIComponent(entity)}/${encodeURIComponent(project)}`, runs, turn);
  const shown = useMemo(() => {
    const byKey = new Map(runs.map((run) => [run.key, run]));
    const part = (key: number) => {
      const run = byKey.get(key);
      return run ? [{ key, label: run.name, colour: colourOf(key, colours), url: (path: string) => fileAddress(filePath({ entity, project, id: run.id }, path)) }] : [];
    };
    return Object.fromEntries(Object.entries(holders ?? {}).map(([name, keys]) => [name, keys.slice(0, MOST_RUNS).flatMap(part)]));
  }, [holders, runs, colours, entity, project]);
  const charts = useCharts(shown, turn);
  const names = useMemo(() => {
    const summary = Object.fromEntries(media.filter(({ name }) => shown[name]?.length).map(({ name, type }) => [name, { _type: type }]));
    return charts ? mediaNames(summary, charts).filter((name) => name.toLowerCase().includes(words)) : [];
  }, [media, charts, words, shown]);
  if (!charts || !names.length) return null;
  const holds = (name: string) => charts[name]?.table ?? name;
  const isCut = names.some((name) => (holders?.[holds(name)]?.length ?? 0) > MOST_RUNS);
  return (
    <section class="section" aria-label="Media">
      <button class="section-head" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Icon name={isOpen ? "down" : "right"} size={14} />
        media
        <span class="faint">{names.length}</span>
      </button>
      {isOpen && isCut && <p class="note">Of each name, the first {plural(MOST_RUNS, "run")} in the table's order that logged it are shown.</p>}
      {isOpen && (
        <div class="media">
          {names.map((name) => (
            <MediaPanel key={name} name={name} runs={shown[holds(name)] ?? []} turn={turn} />
          ))}
        </div>
      )}
    </section>
  );
}

/** Which of the runs have logged something of a name. */
function useHolders(path: string, runs: readonly Run[], turn: number): Record<string, number[]> | null {
  const [holders, setHolders] = useState<Record<string, number[]> | null>(null);
  const keys = runs.slice(0, MOST_LOOKED_AT).map((run) => run.key);
  useEffect(() => {
    let over = false;
    post<{ runs: Record<string, number[]> }>(`${path}/media`, { runs: keys }).then(
      (answer) => !over && setHolders(answer.runs),
      () => !over && setHolders((old) => old ?? {}),
    );
    return () => {
      over = true;
    };
  }, [path, keys.join(), turn]);
  return holders;
}

/** Charts of all these runs: one that a single run has is shown too. */
function useCharts(shown: Record<string, readonly { key: number }[]>, turn: number): Record<string, ChartInfo> | null {
  const [charts, setCharts] = useState<Record<string, ChartInfo> | null>(null);
  const keys = [...new Set(Object.values(shown).flatMap((runs) => runs.map((run) => run.key)))];
  useEffect(() => {
    let over = false;
    Promise.all(keys.map((key) => infoOf(key, turn))).then(
      (infos) => !over && setCharts(Object.assign({}, ...infos.map((info) => info.charts).reverse())),
      () => !over && setCharts((old) => old ?? {}),
    );
    return () => {
      over = true;
    };
  }, [keys.join(), turn]);
  return charts;
}
