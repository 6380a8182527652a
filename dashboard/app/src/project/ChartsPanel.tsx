// The charts of a project: sections by what stands before the slash of a metric's name.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Icon } from "../components/Icon";
import { lazy } from "../components/lazy";
import { Popover } from "../components/Menu";
import { Empty, Failure, Loading } from "../components/States";
import { plural } from "../format";
import { CurveStore, type ChartState } from "./curves";
import { MetricChart } from "./MetricChart";
import type { Keys, Run } from "./runs";
import type { ProjectData } from "./useProject";
import { askedX, change, isDrawn, X_CHOICES, type Defined, type ProjectView, type Spread } from "./view";

const ProjectMedia = lazy(async () => (await import("../media/ProjectMedia")).ProjectMedia);

// More lines than this can be told apart by nobody, and groups show all of them.
export const MOST_LINES = 100;
const POINTS = 1000;

/** Every metric with these words in its name, but those that `define_metric` hides. */
export function shownMetrics(keys: Keys | null, words: string): string[] {
  const wanted = words.toLowerCase();
  return (keys?.metrics ?? []).filter((name) => name.toLowerCase().includes(wanted) && !keys?.defined?.[name]?.hidden);
}

export function sections(metrics: readonly string[]): [string, string[]][] {
  const sections = new Map<string, string[]>();
  for (const metric of metrics) {
    const place = metric.indexOf("/");
    const name = place > 0 ? metric.slice(0, place) : "";
    sections.set(name, [...(sections.get(name) ?? []), metric]);
  }
  // What has no prefix, epochs and rates mostly, comes last.
  return [...sections].sort(([a], [b]) => (a === "" ? 1 : b === "" ? -1 : a.localeCompare(b)));
}

/** One store for a setting; another setting begins anew, while charts keep what they show. */
export function useStore(place: string, stream: "history" | "events", view: Pick<ProjectView, "x" | "zoom">, grown: { turn: number; runs: number[] }): CurveStore {
  const { x, zoom } = view;
  const [low, high] = zoom ?? [null, null];
  const store = useMemo(
    () => new CurveStore({ project: place, stream, x: askedX(x), points: POINTS, range: low === null || high === null ? null : [low, high] }),
    [place, stream, x, low, high],
  );
  useEffect(() => store.grown(grown.runs), [store, grown.turn]);
  return store;
}

export function ChartsPanel({ data, view }: { data: ProjectData; view: ProjectView }) {
  const shown = useMemo(() => data.matches.filter((run) => isDrawn(view, run.key)), [data.matches, view.hidden, view.only]);
  const drawn = useMemo(() => shown.slice(0, MOST_LINES), [shown]);
  const store = useStore(data.place, "history", view, data.grown);
  const words = view.metrics.toLowerCase();
  const metrics = useMemo(() => shownMetrics(data.keys, view.metrics), [data.keys, view.metrics]);
  const groups = useMemo(() => {
    const known = new Set(shown.map((run) => run.key));
    return data.groups && data.groups.map((group) => ({ ...group, runs: group.runs.filter((key) => known.has(key)) })).filter((group) => group.runs.length);
  }, [data.groups, shown]);
  return (
    <section class="charts" aria-label="Charts">
      <Tools data={data} view={view} />
      {!groups && shown.length > drawn.length && (
        <p class="note">
          The first {drawn.length} of {plural(shown.length, "run")} in the table's order are drawn. Grouping draws the mean of all of them.
        </p>
      )}
      <div class="charts-body" tabIndex={-1}>
        {!data.keys && <NoNames state={data.namesState} />}
        {data.keys && !data.keys.metrics.length && !data.keys.media.length && (
          <Empty what="Nothing was logged yet" command="wandb.log({'loss': loss})">
            Each number that a run logs becomes a chart.
          </Empty>
        )}
        {data.keys && data.keys.metrics.length > 0 && !metrics.length && <Empty what={`No metric is called like “${view.metrics}”.`} />}
        {sections(metrics).map(([name, list]) => (
          <Section key={name} name={name} metrics={list} store={store} runs={drawn} groups={groups} view={view} turn={data.grown.turn} defined={data.keys?.defined} />
        ))}
        {data.keys && data.keys.media.length > 0 && <ProjectMedia entity={data.entity} project={data.project} runs={shown} media={data.keys.media} words={words} turn={data.grown.turn} />}
      </div>
    </section>
  );
}

/** Where charts would be, before it is known which there are. */
export function NoNames({ state }: { state: ChartState }) {
  return state === "failed" ? <Failure what="The server does not answer." next="Asked again every few seconds." /> : <Loading />;
}

interface SectionProps {
  name: string;
  metrics: string[];
  store: CurveStore;
  runs: readonly Run[];
  groups: ProjectData["groups"];
  view: ProjectView;
  turn: number;
  defined?: Defined;
}

export function Section({ name, metrics, ...rest }: SectionProps) {
  const [isOpen, setOpen] = useState(true);
  return (
    <section class="section" aria-label={name || "Metrics"}>
      <button class="section-head" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Icon name={isOpen ? "down" : "right"} size={14} />
        {name || "metrics"}
        <span class="faint">{metrics.length}</span>
      </button>
      {isOpen && (
        <div class="grid">
          {metrics.map((metric) => (
            <MetricChart key={metric} metric={metric} {...rest} />
          ))}
        </div>
      )}
    </section>
  );
}

function Tools({ data, view }: { data: ProjectData; view: ProjectView }) {
  const others = (data.keys?.metrics ?? []).filter((name) => !name.startsWith("_"));
  return (
    <div class="tools">
      <input
        type="text"
        class="find-metric"
        placeholder="Find a metric"
        aria-label="Find a metric"
        value={view.metrics}
        onInput={(event) => change.metrics(event.currentTarget.value)}
      />
      <label class="tool" title="What stands on the x axis">
        <span class="faint">x</span>
        <select aria-label="The x axis" value={view.x} onChange={(event) => change.x(event.currentTarget.value)}>
          {X_CHOICES.map(([name, label]) => (
            <option value={name}>{label}</option>
          ))}
          {others.length > 0 && (
            <optgroup label="A metric">
              {others.map((name) => (
                <option value={name}>{name}</option>
              ))}
            </optgroup>
          )}
        </select>
      </label>
      <Smoothing view={view} />
      <button class="quiet" aria-pressed={view.logX} title="Logarithmic x" onClick={() => change.logX(!view.logX)}>
        log x
      </button>
      <button class="quiet" aria-pressed={view.logY.has("*")} title="Logarithmic y of all charts" onClick={() => change.logY(view.logY.has("*") ? [] : ["*"])}>
        log y
      </button>
      <GroupChoice data={data} view={view} />
      {view.zoom && (
        <button class="quiet" onClick={() => change.zoom(null)}>
          <Icon name="close" size={12} /> zoom
        </button>
      )}
    </div>
  );
}

export function Smoothing({ view }: { view: Pick<ProjectView, "smoothing"> }) {
  const timer = useRef(0);
  const [value, setValue] = useState(view.smoothing);
  useEffect(() => setValue(view.smoothing), [view.smoothing]);
  return (
    <label class="tool" title="Exponential mean">
      <span class="faint">smooth</span>
      <input
        type="range"
        min="0"
        max="0.99"
        step="0.01"
        aria-label="Smoothing"
        value={value}
        onInput={(event) => {
          const next = Number(event.currentTarget.value);
          setValue(next);
          clearTimeout(timer.current);
          timer.current = window.setTimeout(() => change.smoothing(next), 40);
        }}
      />
      <output class="smooth-value">{value.toFixed(2)}</output>
    </label>
  );
}

const SPREADS: [Spread, string][] = [
  ["std", "mean ± standard deviation"],
  ["stderr", "mean ± standard error"],
  ["range", "mean, smallest to largest"],
];

function GroupChoice({ data, view }: { data: ProjectData; view: ProjectView }) {
  const config = data.keys?.config.filter((key) => key.varies) ?? [];
  const seeds = config.filter((key) => /(^|[._-])seed$/i.test(key.name)).map((key) => key.name);
  const choices: [string, string][] = [
    ["", "no groups"],
    ...(seeds.length ? ([[`!${seeds.join()}`, `everything but ${seeds.join(", ")}`]] as [string, string][]) : []),
    ...config.map((key) => [`config.${key.name}`, key.name] as [string, string]),
    ["group", "group"],
    ["sweep", "sweep"],
    ["state", "state"],
    ["job_type", "job type"],
  ];
  const known = choices.some(([value]) => value === view.group);
  const says = view.group && `by ${(choices.find(([value]) => value === view.group)?.[1] ?? view.group).replace("config.", "")}`;
  return (
    <Popover
      label={says ? `Group runs: ${says}` : "Group runs"}
      class={view.group ? "quiet on" : "quiet"}
      button={
        <>
          <Icon name="columns" size={14} /> {says || "group"}
        </>
      }
    >
      {() => (
        <div class="form">
          <label>
            Group by
            <select value={view.group} onChange={(event) => change.group(event.currentTarget.value)}>
              {!known && <option value={view.group}>{view.group}</option>}
              {choices.map(([value, label]) => (
                <option value={value}>{label}</option>
              ))}
            </select>
          </label>
          <label>
            Show
            <select value={view.spread} onChange={(event) => change.spread(event.currentTarget.value as Spread)}>
              {SPREADS.map(([value, label]) => (
                <option value={value}>{label}</option>
              ))}
            </select>
          </label>
          <p class="faint">Over all runs of a group, however many.</p>
        </div>
      )}
    </Popover>
  );
}
