// Media of the runs that a project shows, side by side: a panel for each name, as charts have one for each metric.

import { useEffect, useMemo, useState } from "preact/hooks";
import { colourOf } from "../colours";
import { Icon } from "../components/Icon";
import { plural } from "../format";
import { useObserved } from "../observe";
import type { Keys, Run } from "../project/runs";
import { fileAddress } from "../session";
import { theme } from "../theme";
import "../style/media.css";
import { filePath } from "./files";
import { infoOf } from "./info";
import { MediaPanel } from "./MediaPanel";
import { mediaNames, type ChartInfo } from "./values";

// More images than these fit on no screen.
const MOST_RUNS = 8;

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
  const shown = useMemo(
    () =>
      runs.slice(0, MOST_RUNS).map((run) => ({
        key: run.key,
        label: run.name,
        colour: colourOf(run.key, colours),
        url: (path: string) => fileAddress(filePath({ entity, project, id: run.id }, path)),
      })),
    [runs, colours, entity, project],
  );
  const charts = useCharts(shown, turn);
  const names = useMemo(() => {
    const summary = Object.fromEntries(media.map(({ name, type }) => [name, { _type: type }]));
    return charts ? mediaNames(summary, charts).filter((name) => name.toLowerCase().includes(words)) : [];
  }, [media, charts, words]);
  if (!names.length || !shown.length) return null;
  return (
    <section class="section" aria-label="Media">
      <button class="section-head" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Icon name={isOpen ? "down" : "right"} size={14} />
        media
        <span class="faint">{names.length}</span>
      </button>
      {isOpen && runs.length > shown.length && (
        <p class="note">
          The first {shown.length} of {plural(runs.length, "run")} in the table's order are shown.
        </p>
      )}
      {isOpen && (
        <div class="media">
          {names.map((name) => (
            <MediaPanel key={name} name={name} runs={shown} turn={turn} />
          ))}
        </div>
      )}
    </section>
  );
}

/** Charts of all these runs: one that a single run has is shown too. */
function useCharts(runs: readonly { key: number }[], turn: number): Record<string, ChartInfo> | null {
  const [charts, setCharts] = useState<Record<string, ChartInfo> | null>(null);
  const keys = runs.map((run) => run.key).join();
  useEffect(() => {
    let over = false;
    Promise.all(runs.map((run) => infoOf(run.key, turn))).then(
      (infos) => !over && setCharts(Object.assign({}, ...infos.map((info) => info.charts).reverse())),
      () => !over && setCharts((old) => old ?? {}),
    );
    return () => {
      over = true;
    };
  }, [keys, turn]);
  return charts;
}
