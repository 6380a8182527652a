// The reports of a project.

import { get, post } from "../api";
import { useFetch } from "../fetch";
import { Icon } from "../components/Icon";
import { Link } from "../components/Link";
import { Loading, Trouble } from "../components/States";
import { attempt } from "../components/Toasts";
import { formatAgo } from "../format";
import { useLive } from "../live";
import type { Report, ReportHead } from "../report/data";
import { pathOf } from "../root";
import { navigate } from "../router";
import type { PageProps } from "../routes";
import "../style/report.css";

interface Listed {
  revision: number;
  reports: ReportHead[];
}

async function list(path: string): Promise<Listed> {
  const [, , entity, project] = path.split("/").map(decodeURIComponent);
  const { revision } = await get<{ revision: number }>("api/live", { query: { project: `${entity}/${project}` } });
  return { revision, reports: await get<ReportHead[]>(path) };
}

export default function Reports({ entity, project }: PageProps) {
  const { data, error, again } = useFetch<Listed>(`api/projects/${pathOf(entity, project)}/reports`, list);
  useLive({ project: `${entity}/${project}` }, data?.revision ?? null, (news) => (news.whole || news.reports) && again());
  const create = async () => {
    const made = await attempt(post<Report>(`api/projects/${pathOf(entity, project)}/reports`, { title: "Untitled report", notes: "", view: {} }));
    if (made) navigate(`${pathOf(entity, project, "reports", made.id)}?edit=1`);
  };
  if (error && !data) return <Trouble error={error} again={again} />;
  if (!data) return <Loading />;
  const button = (
    <button class="primary" onClick={() => void create()}>
      <Icon name="plus" size={14} /> New report
    </button>
  );
  if (!data.reports.length) {
    return (
      <div class="state">
        <h2>No reports yet</h2>
        <p>A report keeps a view of this project, its runs, charts and your notes in Markdown, under a link. It can be saved as one HTML file that works offline.</p>
        {button}
      </div>
    );
  }
  return (
    <div class="sheet">
      <div class="sheet-head">
        <h1>Reports</h1>
        <span class="right">{button}</span>
      </div>
      <ul class="reports">
        {data.reports.map((report) => (
          <li key={report.id} class="card report-row">
            <Link to={pathOf(entity, project, "reports", report.id)} class="project-link">
              <span>{report.title}</span>
              <span class="faint">{formatAgo(report.updated_at)}</span>
            </Link>
            <p class="soft">{firstWords(report.notes)}</p>
            <span class="faint">{report.user}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

function firstWords(notes: string): string {
  const plain = notes.replace(/^[\s|:-]+$/gm, "").replace(/[#*`>|]|\b_|_\b/g, "").replace(/\s+/g, " ").trim();
  return plain.length > 160 ? `${plain.slice(0, 159)}…` : plain;
}
