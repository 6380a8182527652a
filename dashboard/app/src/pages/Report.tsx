// One report: its notes, its charts, its runs. Whoever may write to the project edits it in place.

import { useEffect, useMemo, useState } from "preact/hooks";
import { del, get, put, type ApiError } from "../api";
import { Icon } from "../components/Icon";
import { Link } from "../components/Link";
import { Menu } from "../components/Menu";
import { Loading, Trouble } from "../components/States";
import { afterAWhile, attempt, say } from "../components/Toasts";
import { copyText } from "../components/Copied";
import { colourOf } from "../colours";
import { formatAgo, formatTime, plural } from "../format";
import { useObserved } from "../observe";
import { MOST_LINES, NoNames, shownMetrics, useStore } from "../project/ChartsPanel";
import { MetricChart } from "../project/MetricChart";
import { useProject, type ProjectData } from "../project/useProject";
import { isDrawn, readView, type ProjectView } from "../project/view";
import { viewOf, type Report, type ReportView } from "../report/data";
import { saveReport } from "../report/export";
import { Markdown } from "../report/markdown";
import { RunsTable } from "../report/Table";
import { address, pathOf } from "../root";
import { theme } from "../theme";
import { navigate, usePlace, useQuery } from "../router";
import type { PageProps } from "../routes";
import "../style/project.css";
import "../style/report.css";

export default function ReportPage({ entity, project, id }: PageProps) {
  const [report, setReport] = useState<Report | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const load = () => void get<Report>(`api/reports/${encodeURIComponent(id)}`).then(setReport, setError);
  useEffect(load, [id]);
  if (error && !report) return <Trouble error={error} again={load} />;
  if (!report) return <Loading />;
  return <Shown key={report.id} report={report} entity={entity} project={project} changed={setReport} />;
}

function Shown(props: { report: Report; entity: string; project: string; changed: (report: Report) => void }) {
  const { report, entity, project, changed } = props;
  const [edits, setEdits] = useQuery("edit");
  const { query } = usePlace();
  const [draft, setDraft] = useState<Pick<Report, "title" | "notes" | "view"> | null>(null);
  const shown = draft ? { ...report, ...draft } : report;
  const zoom = query.get("zoom");
  const look = JSON.stringify(shown.view);
  const view = useMemo(() => viewOf(shown.view, zoom), [look, zoom]);
  const data = useProject(entity, project, view);
  useEffect(() => {
    if (edits && !draft) setDraft({ title: report.title, notes: report.notes, view: report.view });
  }, [edits]);

  const runs = useMemo(() => {
    const chosen = shown.view.runs && new Set(shown.view.runs);
    return data.matches.filter((run) => (chosen ? chosen.has(run.key) : isDrawn(view, run.key)));
  }, [data.matches, look, view.hidden, view.only]);
  const metrics = shown.view.metrics ?? shownMetrics(data.keys, view.metrics);
  const groups = useMemo(() => {
    const known = new Set(runs.map((run) => run.key));
    return data.groups && data.groups.map((group) => ({ ...group, runs: group.runs.filter((key) => known.has(key)) })).filter((group) => group.runs.length);
  }, [data.groups, runs]);

  const save = async () => {
    const saved = await attempt(put<Report>(`api/reports/${report.id}`, { ...draft, revision: report.revision }), "Saved.");
    if (!saved) return;
    changed(saved);
    setDraft(null);
    setEdits(null);
  };
  const leave = () => {
    setDraft(null);
    setEdits(null);
  };
  const remove = () => {
    const path = pathOf(entity, project, "reports");
    navigate(path);
    afterAWhile(`“${report.title}” is deleted.`, () => del(`api/reports/${report.id}`), () => navigate(pathOf(entity, project, "reports", report.id)));
  };
  return (
    <div class="report">
      <div class="report-head">
        {draft ? <input class="report-title" aria-label="Title" value={draft.title} onInput={(event) => setDraft({ ...draft, title: event.currentTarget.value })} /> : <h1>{report.title}</h1>}
        <div class="row right">
          {draft ? (
            <>
              <button onClick={leave}>Discard</button>
              <button class="primary" disabled={!draft.title.trim()} onClick={() => void save()}>
                Save
              </button>
            </>
          ) : (
            <>
              <button onClick={() => void copyText(address(pathOf(entity, project, "reports", report.id))).then(() => say("The link is copied."))}>
                <Icon name="copy" size={14} /> Link
              </button>
              <button disabled={!data.keys} onClick={() => void attempt(saveReport({ report, view, metrics, runs: groups ? runs : runs.slice(0, MOST_LINES), groups, columns: data.columns, defined: data.keys?.defined, ranked: data.keys?.ranked }))}>
                <Icon name="save" size={14} /> HTML
              </button>
              <button class="primary" onClick={() => setEdits("1")}>
                <Icon name="edit" size={14} /> Edit
              </button>
              <Menu label="More" button={<Icon name="more" />} items={[{ says: "Delete", icon: "trash", dangerous: true, act: remove }]} />
            </>
          )}
        </div>
        <p class="faint" title={formatTime(report.updated_at)}>
          {`${report.user}, saved ${formatAgo(report.updated_at)}; `}
          {shown.view.runs ? `${plural(shown.view.runs.length, "run")} as of then` : `${plural(runs.length, "run")}, live`}
          {". "}
          <Link to={`${pathOf(entity, project)}${shown.view.query ? `?${shown.view.query}` : ""}`}>Open in the project</Link>
        </p>
      </div>
      {draft ? <Editing draft={draft} change={setDraft} data={data} found={runs.map((run) => run.key)} /> : report.notes.trim() ? <Markdown text={report.notes} /> : <p class="faint">No notes yet.</p>}
      <Charts data={data} view={view} metrics={metrics} runs={runs} groups={groups} />
      <RunsTable runs={runs} columns={data.columns} ranked={data.keys?.ranked} entity={entity} project={project} />
    </div>
  );
}

type Draft = Pick<Report, "title" | "notes" | "view">;

function Editing({ draft, change, data, found }: { draft: Draft; change: (draft: Draft) => void; data: ProjectData; found: number[] }) {
  const set = (view: Partial<ReportView>) => change({ ...draft, view: { ...draft.view, ...view } });
  const all = shownMetrics(data.keys, "");
  const chosen = new Set(draft.view.metrics ?? shownMetrics(data.keys, readView(new URLSearchParams(draft.view.query ?? "")).metrics));
  return (
    <div class="editing">
      <div class="editing-notes">
        <label>
          <span>Notes, in Markdown</span>
          <textarea value={draft.notes} rows={14} placeholder={"# What we found\n\nThe **small** model wins…"} onInput={(event) => change({ ...draft, notes: event.currentTarget.value })} />
        </label>
        <div class="preview" aria-label="Preview">
          <Markdown text={draft.notes} />
        </div>
      </div>
      <fieldset>
        <legend>Charts</legend>
        <div class="row wrap">
          {all.map((name) => (
            <label key={name} class="metric-choice">
              <input
                type="checkbox"
                checked={chosen.has(name)}
                onChange={(event) => {
                  const next = new Set(chosen);
                  if (event.currentTarget.checked) next.add(name);
                  else next.delete(name);
                  set({ metrics: all.filter((metric) => next.has(metric)) });
                }}
              />
              {name}
            </label>
          ))}
        </div>
      </fieldset>
      <fieldset>
        <legend>Runs</legend>
        <label class="metric-choice">
          <input type="checkbox" checked={!!draft.view.runs} onChange={(event) => set({ runs: event.currentTarget.checked ? found : null })} />
          {`Keep these ${plural(found.length, "run")}, whatever comes later`}
        </label>
        <label class="report-query">
          <span>The project's view, as in its address after the ?</span>
          <input value={draft.view.query ?? ""} placeholder="q=state = finished&group=config.lr&smooth=0.6" onInput={(event) => set({ query: event.currentTarget.value.replace(/^.*\?/, "") })} />
        </label>
      </fieldset>
    </div>
  );
}

function Charts(props: { data: ProjectData; view: ProjectView; metrics: readonly string[]; runs: ProjectData["runs"]; groups: ProjectData["groups"] }) {
  const { data, view, metrics, groups } = props;
  const store = useStore(data.place, "history", view, data.grown);
  const colours = useObserved(theme);
  const drawn = useMemo(() => props.runs.slice(0, MOST_LINES), [props.runs]);
  if (!metrics.length) return data.keys ? null : <NoNames state={data.namesState} />;
  return (
    <>
      <section class="grid report-charts" aria-label="Charts">
        {metrics.map((metric) => (
          <MetricChart key={metric} metric={metric} store={store} runs={drawn} groups={groups} view={view} turn={data.grown.turn} defined={data.keys?.defined} />
        ))}
      </section>
      {groups && (
        <ul class="report-legend" aria-label="Groups">
          {groups.map((group) => (
            <li key={group.label}>
              <span class="swatch" style={{ background: colourOf(group.turn, colours) }} />
              {group.label} <span class="faint">{plural(group.runs.length, "run")}</span>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
