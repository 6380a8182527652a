// A project: its runs beside their charts.

import { post } from "../api";
import { Icon, type IconName } from "../components/Icon";
import { Loading, Trouble } from "../components/States";
import { attempt } from "../components/Toasts";
import { useShortcuts } from "../keyboard";
import { ChartsPanel } from "../project/ChartsPanel";
import { Compare } from "../project/Compare";
import { useEditing } from "../project/RunActions";
import { RunsPanel } from "../project/RunsPanel";
import { useProject } from "../project/useProject";
import { change, useProjectView, type Panel } from "../project/view";
import { pathOf } from "../root";
import { navigate } from "../router";
import type { PageProps } from "../routes";
import "../style/project.css";

/** A report with what is seen now, to be given a title and notes. */
async function keep(entity: string, project: string): Promise<void> {
  const view = { query: location.search.slice(1) };
  const made = await attempt(post<{ id: string }>(`api/projects/${pathOf(entity, project)}/reports`, { title: "Untitled report", notes: "", view }));
  if (made) navigate(`${pathOf(entity, project, "reports", made.id)}?edit=1`);
}

/** For the keyboard: the table's tools and head are many stops. */
function SkipToCharts() {
  return (
    <button class="skip" onClick={() => document.querySelector<HTMLElement>(".charts-body")?.focus()}>
      Skip to charts
    </button>
  );
}

const PANELS: [Panel, string, IconName][] = [
  ["runs", "Runs only", "columns"],
  ["both", "Runs and charts", "compare"],
  ["charts", "Charts only", "chart"],
];

export default function Project({ entity, project }: PageProps) {
  const view = useProjectView();
  const data = useProject(entity, project, view);
  const { editing, dialog } = useEditing(data);
  useShortcuts(
    [
      { keys: "1", says: "runs only", act: () => change.panel("runs") },
      { keys: "2", says: "runs and charts", act: () => change.panel("both") },
      { keys: "3", says: "charts only", act: () => change.panel("charts") },
      { keys: "z", says: "undo the zoom", act: () => change.zoom(null) },
      { keys: "ArrowUp ArrowDown", says: "move in the table; Space selects, ↵ opens, h hides, p pins" },
      { keys: "Delete", says: "delete the selected runs", act: () => editing.remove([...editing.selected]) },
      { keys: "c", says: "to the charts", act: () => document.querySelector<HTMLElement>(".charts-body")?.focus() },
    ],
    [editing],
  );
  if (data.error && !data.isLoaded) return <Trouble error={data.error} again={data.again} />;
  if (!data.isLoaded) return <Loading />;
  return (
    <div class={`project-page panel-${view.panel}`}>
      <SkipToCharts />
      <div class="panels" role="group" aria-label="Panels">
        {PANELS.map(([name, label, icon]) => (
          <button class="quiet" aria-label={label} title={label} aria-pressed={view.panel === name} onClick={() => change.panel(name)}>
            <Icon name={icon} size={14} />
          </button>
        ))}
        <button class="quiet" aria-label="Keep this view as a report" title="Keep this view as a report" onClick={() => void keep(entity, project)}>
          <Icon name="save" size={14} />
        </button>
      </div>
      {view.panel !== "charts" && <RunsPanel data={data} view={view} entity={entity} project={project} editing={editing} />}
      {view.panel !== "runs" && <ChartsPanel data={data} view={view} />}
      {dialog}
      {view.compare.length > 0 && (
        <Compare entity={entity} project={project} ids={view.compare.map((key) => data.list.find(key)?.id ?? String(key))} close={() => change.compare([])} />
      )}
    </div>
  );
}
