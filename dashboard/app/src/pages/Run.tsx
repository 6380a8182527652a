// One run: its charts, what it is, what it printed, and what it left.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { patch, post } from "../api";
import { StateBadge, Tag } from "../components/Badge";
import { Icon } from "../components/Icon";
import { lazy } from "../components/lazy";
import { Menu } from "../components/Menu";
import { Empty, Loading, Trouble } from "../components/States";
import { attempt } from "../components/Toasts";
import { useFetch } from "../fetch";
import { colourOf } from "../colours";
import { formatAgo, formatDuration } from "../format";
import { useLive } from "../live";
import { filePath } from "../media/files";
import { mediaIn } from "../media/values";
import { useObserved } from "../observe";
import { NoNames, Section, sections, Smoothing, useStore } from "../project/ChartsPanel";
import { Ask } from "../project/RunActions";
import { ConfirmDelete, trashRuns } from "../project/Trash";
import { useNames, type Names } from "../project/names";
import { isAlive, type Run as ListedRun } from "../project/runs";
import { change, useProjectView, X_CHOICES, type ProjectView } from "../project/view";
import { pathOf } from "../root";
import { navigate, usePlace, useQuery } from "../router";
import type { PageProps } from "../routes";
import { fileAddress } from "../session";
import { Artifacts } from "../run/Artifacts";
import { Console } from "../run/Console";
import type { RunDetail } from "../run/detail";
import { Files } from "../run/Files";
import { Overview } from "../run/Overview";
import { Versus } from "../run/Versus";
import { theme } from "../theme";
import "../style/blocks.css";
import "../style/project.css";
import "../style/run.css";

const MediaView = lazy(async () => (await import("../run/MediaView")).MediaView);

const TABS = [
  ["charts", "Charts"],
  ["overview", "Overview"],
  ["console", "Console"],
  ["system", "System"],
  ["media", "Media"],
  ["files", "Files"],
  ["artifacts", "Artifacts"],
  ["versus", "Compare"],
] as const;
type Tab = (typeof TABS)[number][0];

// As W&B's addresses call them.
const OTHER_NAMES: Record<string, Tab> = { workspace: "charts", logs: "console", output: "console", "system-metrics": "system" };

function useTab(): [Tab, (tab: Tab) => void] {
  const { parts } = usePlace();
  const fromPath = parts[4] ?? "";
  const first = TABS.find(([name]) => name === fromPath)?.[0] ?? OTHER_NAMES[fromPath] ?? "charts";
  const [tab, setTab] = useQuery("tab", first);
  return [TABS.some(([name]) => name === tab) ? (tab as Tab) : first, setTab];
}

export default function Run({ entity, project, id }: PageProps) {
  const path = `api/run?${new URLSearchParams({ name: `${entity}/${project}/${id}` })}`;
  const { data: run, error, again } = useFetch<RunDetail>(path);
  const [tab, setTab] = useTab();
  const [grown, setGrown] = useState<{ turn: number; runs: number[] }>({ turn: 0, runs: [] });
  const [since, setSince] = useState<number | null>(null);
  const names = useNames(entity, project);
  const { keys, ask: askNames } = names;
  useEffect(() => void askNames(), [askNames]);
  useEffect(() => {
    if (keys) setSince(keys.revision);
  }, [keys]);
  // Names that the project did not have when its keys were read.
  const isNew = !!run && !!keys && run.metrics.some((name) => !keys.metrics.includes(name));
  useEffect(() => {
    if (isNew) void askNames();
  }, [isNew, run?.metrics.length]);
  useLive(run ? { run: String(run.key) } : null, since, (news) => {
    if (news.whole || news.runs?.length || news.deleted?.length) again();
    if (news.whole || news.history?.length) {
      setGrown((old) => ({ turn: old.turn + 1, runs: run ? [run.key] : [] }));
      again();
    }
  });
  // On a narrow screen the row of tabs scrolls.
  const chosen = useRef<HTMLButtonElement>(null);
  useEffect(() => chosen.current?.scrollIntoView({ block: "nearest", inline: "center" }), [tab, run?.key]);
  if (error && (!run || error.status === 404)) return <Trouble error={error} again={again} />;
  if (!run) return <Loading />;
  const fileUrl = (name: string) => fileAddress(filePath(run, name));
  const media = mediaIn(run.summary).length;
  return (
    <div class="run-page">
      <Head run={run} again={again} />
      <nav class="tabs" role="tablist" aria-label="Of this run">
        {TABS.map(([name, label]) => (
          <button role="tab" ref={tab === name ? chosen : undefined} aria-selected={tab === name} class="tab" onClick={() => setTab(name)}>
            {label}
            {name === "media" && media > 0 && <span class="count">{media}</span>}
            {name === "files" && run.files.length > 0 && <span class="count">{run.files.length}</span>}
          </button>
        ))}
      </nav>
      <div class={`tab-body tab-${tab}`} role="tabpanel">
        {tab === "charts" && <Charts run={run} stream="history" grown={grown} names={names} />}
        {tab === "system" && <Charts run={run} stream="events" grown={grown} names={names} />}
        {tab === "overview" && <Overview run={run} fileUrl={fileUrl} changed={again} />}
        {tab === "console" && <Console run={run} fileUrl={fileUrl} />}
        {tab === "media" && <MediaView run={run} fileUrl={fileUrl} turn={grown.turn} />}
        {tab === "files" && <Files run={run} fileUrl={fileUrl} />}
        {tab === "artifacts" && <Artifacts run={run} />}
        {tab === "versus" && <Versus run={run} />}
      </div>
    </div>
  );
}

function Head({ run, again }: { run: RunDetail; again: () => void }) {
  const colours = useObserved(theme);
  const [isRenaming, setRenaming] = useState(false);
  const begin = run.started_at ?? run.created_at;
  const end = run.ended_at ?? (isAlive(run) ? Date.now() / 1000 : run.heartbeat_at);
  const [isDeleting, setDeleting] = useState(false);
  const remove = () => {
    setDeleting(false);
    const home = pathOf(run.entity, run.project);
    void trashRuns(`api/projects/${home}`, [run.key]).then((done) => done && navigate(home));
  };
  return (
    <header class="run-head">
      <span class="swatch large" style={{ background: colourOf(run.key, colours) }} />
      <h1>{run.name}</h1>
      <StateBadge state={run.state} />
      {run.tags.map((tag) => (
        <Tag text={tag} />
      ))}
      <span class="soft run-facts">
        <span>{end === null ? "–" : formatDuration(end - begin)}</span>
        <span>{run.steps.toLocaleString("en")} rows</span>
        {run.host && <span>{run.host}</span>}
        <span>{formatAgo(run.created_at)}</span>
        {run.attempts.length > 1 && <span>{run.attempts.length} attempts</span>}
        {run.stop_asked && isAlive(run) && <span>asked to stop</span>}
      </span>
      <span class="right row">
        {isAlive(run) && !run.stop_asked && (
          <button onClick={() => void attempt(post(`api/runs/${run.key}/stop`), "Stop requested: what was logged is kept").then(again)}>Stop</button>
        )}
        <Menu
          label="More"
          button={<Icon name="more" />}
          items={[
            { says: "Rename", icon: "edit", act: () => setRenaming(true) },
            { says: "Delete", icon: "trash", dangerous: true, act: () => setDeleting(true) },
          ]}
        />
      </span>
      {isRenaming && (
        <Ask
          title="Rename"
          label="Name"
          value={run.name}
          verb="Rename"
          close={() => setRenaming(false)}
          save={(name) => {
            setRenaming(false);
            void attempt(patch(`api/runs/${run.key}`, { name })).then(again);
          }}
        />
      )}
      {isDeleting && <ConfirmDelete runs={[run]} close={() => setDeleting(false)} agree={remove} />}
    </header>
  );
}

interface ChartsProps {
  run: RunDetail;
  stream: "history" | "events";
  grown: { turn: number; runs: number[] };
  names: Names;
}

function Charts({ run, stream, grown, names: { keys, state } }: ChartsProps) {
  const whole = useProjectView();
  // What a system does has no steps, only times.
  const view = useMemo<ProjectView>(() => (stream === "events" && whole.x === "_step" ? { ...whole, x: "_runtime" } : whole), [whole, stream]);
  const store = useStore(`${run.entity}/${run.project}`, stream, view, grown);
  const numbers = useMemo(() => new Set(keys?.metrics), [keys]);
  const own = run.metrics.filter((name) => numbers.has(name));
  const words = view.metrics.toLowerCase();
  const shown = stream === "events" ? (keys?.events ?? null) : keys && own.filter((name) => !keys?.defined?.[name]?.hidden);
  const metrics = (shown ?? []).filter((metric) => metric.toLowerCase().includes(words));
  const runs = useMemo(() => [run as unknown as ListedRun], [run.key, run.name]);
  if (!shown) return <NoNames state={state} />;
  if (!shown.length) {
    return stream === "events" ? (
      <Empty what="No system metrics yet">wandb samples them every 15 seconds, unless it is told not to.</Empty>
    ) : (
      <Empty what="Nothing was logged yet" command="wandb.log({'loss': loss})" />
    );
  }
  return (
    <>
      <div class="tools">
        <input type="text" class="find-metric" placeholder="Find a metric" aria-label="Find a metric" value={view.metrics} onInput={(event) => change.metrics(event.currentTarget.value)} />
        <select aria-label="The x axis" value={view.x} onChange={(event) => change.x(event.currentTarget.value)}>
          {X_CHOICES.filter(([choice]) => stream === "history" || choice !== "_step").map(([choice, label]) => (
            <option value={choice}>{label}</option>
          ))}
          {stream === "history" && (
            <optgroup label="A metric">
              {own.map((metric) => (
                <option value={metric}>{metric}</option>
              ))}
            </optgroup>
          )}
        </select>
        <Smoothing view={view} />
        <button class="quiet" aria-pressed={view.logY.has("*")} onClick={() => change.logY(view.logY.has("*") ? [] : ["*"])}>
          log y
        </button>
        {view.zoom && (
          <button class="quiet" onClick={() => change.zoom(null)}>
            <Icon name="close" size={12} /> zoom
          </button>
        )}
      </div>
      <div class="charts-body">
        {(stream === "events" ? systemSections(metrics) : sections(metrics)).map(([title, list]) => (
          <Section key={title} name={title} metrics={list} store={store} runs={runs} groups={null} view={view} turn={grown.turn} defined={stream === "history" ? keys?.defined : undefined} />
        ))}
      </div>
    </>
  );
}

/** `system.gpu.0.memory` belongs to the GPU, `system.proc.cpu.threads` to the process. */
function systemSections(metrics: readonly string[]): [string, string[]][] {
  const sections = new Map<string, string[]>();
  for (const metric of metrics) {
    const part = metric.split(".")[1] ?? "";
    const name = part.startsWith("gpu") ? "GPU" : part.startsWith("proc") ? "process" : part.startsWith("cpu") ? "CPU" : part.startsWith("memory") ? "memory" : part;
    sections.set(name, [...(sections.get(name) ?? []), metric]);
  }
  const first = (name: string) => (name === "GPU" ? 0 : name === "process" ? 1 : 2);
  return [...sections].sort(([a], [b]) => first(a) - first(b) || a.localeCompare(b));
}
