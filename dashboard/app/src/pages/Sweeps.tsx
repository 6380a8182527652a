// The sweeps of a project.

import { useMemo, useState } from "preact/hooks";
import { get } from "../api";
import { useFetch } from "../fetch";
import { StateBadge } from "../components/Badge";
import { Icon } from "../components/Icon";
import { Link } from "../components/Link";
import { Empty, Loading, Trouble } from "../components/States";
import { formatAgo, formatDuration, formatNumber, plural } from "../format";
import { useLive } from "../live";
import { pathOf } from "../root";
import { useQuery } from "../router";
import type { PageProps } from "../routes";
import type { Sweep } from "../sweep/data";
import { NewSweep } from "../sweep/NewSweep";
import "../style/sweep.css";

interface Listed {
  revision: number;
  sweeps: Sweep[];
}

/** The revision is asked for first: what changes meanwhile is told then. */
async function list(path: string): Promise<Listed> {
  const place = new URLSearchParams(path.split("?")[1]).get("project")!;
  const { revision } = await get<{ revision: number }>("api/live", { query: { project: place } });
  return { revision, sweeps: await get<Sweep[]>(path) };
}

export default function Sweeps({ entity, project }: PageProps) {
  const place = `${entity}/${project}`;
  const { data, error, again } = useFetch<Listed>(`api/sweeps?project=${encodeURIComponent(place)}`, list);
  const [words, setWords] = useQuery("q");
  const [makes, setMakes] = useState(false);
  useLive({ project: place }, data?.revision ?? null, (news) => (news.whole || news.sweeps.length > 0) && again());
  const shown = useMemo(() => {
    const wanted = words.toLowerCase();
    return (data?.sweeps ?? []).filter((sweep) => `${sweep.name} ${sweep.id} ${sweep.method}`.toLowerCase().includes(wanted));
  }, [data, words]);
  if (error && !data) return <Trouble error={error} again={again} />;
  if (!data) return <Loading />;
  const dialog = makes && <NewSweep entity={entity} project={project} close={() => setMakes(false)} />;
  const button = (
    <button class="primary" onClick={() => setMakes(true)}>
      <Icon name="plus" size={14} /> New sweep
    </button>
  );
  if (!data.sweeps.length) {
    return (
      <>
        <Empty what="No sweeps in this project" command="runyard sweep sweep.yaml">
          A sweep tries settings of a program and finds the best. W&B's sweep files work as they are; a list of command lines (runyard farm) and a list of seeds (runyard repeat) are sweeps too. {button}
        </Empty>
        {dialog}
      </>
    );
  }
  return (
    <div class="sheet">
      <div class="sheet-head">
        <h1>Sweeps</h1>
        <input type="search" class="right" placeholder="Search (/)" aria-label="Search sweeps" value={words} onInput={(event) => setWords(event.currentTarget.value)} />
        {button}
      </div>
      {shown.length === 0 && <Empty what={`No sweep is called like “${words}”.`} />}
      <ul class="sweeps">
        {shown.map((sweep) => (
          <Row key={sweep.key} sweep={sweep} to={pathOf(entity, project, "sweeps", sweep.id)} />
        ))}
      </ul>
      {dialog}
    </div>
  );
}

function Row({ sweep, to }: { sweep: Sweep; to: string }) {
  const ended = ["finished", "stopped", "failed", "canceled"].reduce((sum, state) => sum + (sweep.counts[state] ?? 0), 0);
  const whole = Math.max(sweep.expected ?? sweep.trials, sweep.trials, 1);
  return (
    <li class="card sweep-row">
      <Link to={to} class="project-link">
        <span>
          {sweep.name} {sweep.name !== sweep.id && <span class="mono faint">{sweep.id}</span>}
        </span>
        <StateBadge state={sweep.state} />
      </Link>
      <div class="progress-bar" aria-hidden="true">
        {["finished", "stopped", "failed", "canceled", "running"].map((state) => (
          <span key={state} class={`part-${state}`} style={{ width: `${((sweep.counts[state] ?? 0) / whole) * 100}%` }} />
        ))}
      </div>
      <div class="project-facts wrap">
        <span>{sweep.method}</span>
        <span>{`${formatNumber(ended)} of ${sweep.expected === null ? "no end" : formatNumber(sweep.expected)}`}</span>
        {(sweep.counts.running ?? 0) > 0 && <span>{sweep.counts.running} running</span>}
        {(sweep.counts.failed ?? 0) > 0 && <span class="bad">{sweep.counts.failed} failed</span>}
        {sweep.best?.value != null && (
          <span>
            best {sweep.metric} {formatNumber(sweep.best.value)}
          </span>
        )}
        {sweep.state === "running" && sweep.eta_seconds !== null && <span>about {formatDuration(sweep.eta_seconds)} left</span>}
        {sweep.agents.length > 0 && <span>{plural(sweep.agents.length, "agent")}</span>}
        <span class="right faint">{formatAgo(sweep.created_at)}</span>
      </div>
    </li>
  );
}
