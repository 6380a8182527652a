// All projects that one may see.

import { useMemo } from "preact/hooks";
import { useFetch } from "../fetch";
import { Link } from "../components/Link";
import { Empty, Loading, Trouble } from "../components/States";
import { formatAgo, plural } from "../format";
import { useLive } from "../live";
import { pathOf } from "../root";
import { useQuery } from "../router";

interface Project {
  entity: string;
  name: string;
  runs: number;
  running: number;
  sweeps: number;
  last_at: number | null;
  counts: Record<string, number>;
  activity: number[];
  /** The newest run's first metric. */
  metric: string | null;
  spark: (number | string | null)[];
}

export default function Projects() {
  const { data, error, again } = useFetch<{ revision: number; projects: Project[] }>("api/projects");
  const [words, setWords] = useQuery("q");
  useLive({ projects: "1" }, data?.revision ?? null, (news) => (news.projects || news.whole) && again());
  const shown = useMemo(() => {
    const wanted = words.toLowerCase();
    return (data?.projects ?? []).filter((project) => `${project.entity}/${project.name}`.toLowerCase().includes(wanted));
  }, [data, words]);
  if (error && !data) return <Trouble error={error} again={again} />;
  if (!data) return <Loading />;
  if (!data.projects.length) {
    return (
      <Empty what="No runs yet" command="runyard run -- python train.py">
        Track any program, as it is. It appears here the moment it starts.
      </Empty>
    );
  }
  return (
    <div class="sheet">
      <div class="sheet-head">
        <h1>Projects</h1>
        <input type="search" class="right" placeholder="Search (/)" aria-label="Search projects" value={words} onInput={(event) => setWords(event.currentTarget.value)} />
      </div>
      {shown.length === 0 && <Empty what={`No project is called like “${words}”.`} />}
      <ul class="projects">
        {shown.map((project) => (
          <li key={`${project.entity}/${project.name}`} class="card project">
            <Link to={pathOf(project.entity, project.name)} class="project-link">
              <span class="project-name">{project.name}</span>
              <span class="faint">{project.entity}</span>
            </Link>
            {project.spark?.length > 1 ? <Spark values={project.spark} label={project.metric ?? ""} /> : <Activity days={project.activity} />}
            <div class="project-facts">
              <span>{plural(project.runs, "run")}</span>
              {project.sweeps > 0 && <span>{plural(project.sweeps, "sweep")}</span>}
              {project.running > 0 && (
                <span class="badge state-running">
                  <span class="dot" />
                  {project.running} running
                </span>
              )}
              <span class="right faint">{formatAgo(project.last_at)}</span>
            </div>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** How many runs began on each of the last thirty days. */
function Activity({ days }: { days: number[] }) {
  const most = Math.max(1, ...days);
  return (
    <div class="activity" title="Runs begun on each of the last 30 days">
      {days.map((count) => (
        <span class={count ? "" : "none"} style={{ height: `${count ? 12 + (88 * count) / most : 4}%` }} />
      ))}
    </div>
  );
}

function Spark({ values, label }: { values: (number | string | null)[]; label: string }) {
  const known = values.filter((value): value is number => typeof value === "number");
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const points = values.flatMap((value, place) => {
    if (typeof value !== "number") return [];
    const y = high > low ? 31 - ((value - low) / (high - low)) * 28 : 17;
    return [`${((place / (values.length - 1)) * 200).toFixed(1)} ${y.toFixed(1)}`];
  });
  return (
    <div class="spark" title={`${label} of the newest run`}>
      <svg viewBox="0 0 200 34" preserveAspectRatio="none" aria-hidden="true">
        {points.length > 1 && <path d={`M${points.join("L")}`} />}
      </svg>
      <span class="faint">{label}</span>
    </div>
  );
}
