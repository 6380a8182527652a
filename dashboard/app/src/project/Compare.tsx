// Several runs side by side: every config and summary value, what differs first to be seen.

import { useEffect, useState } from "preact/hooks";
import { get } from "../api";
import { StateBadge } from "../components/Badge";
import { Dialog } from "../components/Dialog";
import { Link } from "../components/Link";
import { Loading } from "../components/States";
import { colourOf } from "../colours";
import { exactText, formatDuration, formatTime, hasType, summaryName } from "../format";
import { useObserved } from "../observe";
import { pathOf } from "../root";
import { theme } from "../theme";
import { valueText } from "./columns";
import { flatten } from "./flat";

export interface Compared {
  key: number;
  id: string;
  name: string;
  state: string;
  created_at: number;
  started_at: number | null;
  ended_at: number | null;
  config: Record<string, unknown>;
  summary: Record<string, unknown>;
}

interface Props {
  entity: string;
  project: string;
  ids: string[];
  close: () => void;
}

export function Compare({ entity, project, ids, close }: Props) {
  const [runs, setRuns] = useState<Compared[] | null>(null);
  useEffect(() => {
    void Promise.all(ids.map((id) => get<Compared>("api/run", { query: { name: `${entity}/${project}/${id}` } }).catch(() => null))).then((answers) =>
      setRuns(answers.filter((run): run is Compared => run !== null)),
    );
  }, [ids.join()]);
  return (
    <Dialog title={`Compare ${ids.length} runs`} large close={close}>
      {runs ? <Differences runs={runs} entity={entity} project={project} /> : <Loading />}
    </Dialog>
  );
}

export function Differences({ runs, entity, project }: { runs: Compared[]; entity: string; project: string }) {
  const [onlyDifferent, setOnly] = useState(true);
  const colours = useObserved(theme);
  const parts = (["config", "summary"] as const).map((part) => {
    const flat = runs.map((run) => flatten(run[part]));
    const names = [...new Set(flat.flatMap((values) => Object.keys(values)))].filter((name) => !name.startsWith("_") && !flat.some((values) => hasType(values[name]))).sort();
    const rows = names.map((name) => {
      const values = flat.map((config) => config[name]);
      return { name, values, differs: new Set(values.map((value) => JSON.stringify(value) ?? "")).size > 1 };
    });
    return { part, rows: onlyDifferent ? rows.filter((row) => row.differs) : rows, all: rows.length };
  });
  return (
    <>
      <label class="row compare-switch">
        <input type="checkbox" checked={onlyDifferent} onChange={() => setOnly(!onlyDifferent)} /> Only what differs
      </label>
      <div class="compare">
        <table>
          <thead>
            <tr>
              <th />
              {runs.map((run) => (
                <th>
                  <span class="row">
                    <span class="swatch" style={{ background: colourOf(run.key, colours) }} />
                    <Link to={pathOf(entity, project, "runs", run.id)}>{run.name}</Link>
                  </span>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            <tr>
              <th>state</th>
              {runs.map((run) => (
                <td>
                  <StateBadge state={run.state} />
                </td>
              ))}
            </tr>
            <tr>
              <th>started</th>
              {runs.map((run) => (
                <td>{formatTime(run.started_at ?? run.created_at)}</td>
              ))}
            </tr>
            <tr>
              <th>runtime</th>
              {runs.map((run) => (
                <td>{run.ended_at ? formatDuration(run.ended_at - (run.started_at ?? run.created_at)) : "–"}</td>
              ))}
            </tr>
            {parts.map(({ part, rows, all }) => (
              <>
                <tr class="part">
                  <th colSpan={runs.length + 1}>
                    {part} <span class="soft">{rows.length === all ? all : `${rows.length} of ${all} differ`}</span>
                  </th>
                </tr>
                {rows.map((row) => (
                  <tr class={row.differs && !onlyDifferent ? "differs" : ""}>
                    <th>{part === "summary" ? summaryName(row.name) : row.name}</th>
                    {row.values.map((value) => (
                      <td class={typeof value === "number" ? "number" : ""} title={exactText(value)}>
                        {valueText(`${part}.`, value)}
                      </td>
                    ))}
                  </tr>
                ))}
              </>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
