// The runs of a report, as a plain table that can be printed and saved.

import { useState } from "preact/hooks";
import { StateBadge } from "../components/Badge";
import { Link } from "../components/Link";
import { colourOf } from "../colours";
import { exactText } from "../format";
import { useObserved } from "../observe";
import { labelOf, shortText } from "../project/columns";
import { reader } from "../project/fields";
import type { Keys, Run } from "../project/runs";
import { pathOf } from "../root";
import { theme } from "../theme";

export const MOST_ROWS = 100;
const FIRST_ROWS = 15;

export function shownColumns(columns: readonly string[]): string[] {
  return columns.filter((name) => /^(config|summary|best)\./.test(name));
}

export function RunsTable(props: { runs: readonly Run[]; columns: readonly string[]; ranked?: Keys["ranked"]; entity: string; project: string }) {
  const colours = useObserved(theme);
  const columns = shownColumns(props.columns);
  const readers = columns.map((name) => reader(name));
  const [isWhole, setWhole] = useState(false);
  const most = isWhole ? props.runs.length : FIRST_ROWS;
  return (
    <div class="report-table" tabIndex={0} role="region" aria-label="Runs">
      <table>
        <thead>
          <tr>
            <th scope="col">run</th>
            <th scope="col">state</th>
            {columns.map((name) => (
              <th scope="col" class="number">
                {labelOf(name, props.ranked)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {props.runs.slice(0, most).map((run) => (
            <tr key={run.key}>
              <th scope="row">
                <span class="swatch" style={{ background: colourOf(run.key, colours) }} />
                <Link to={pathOf(props.entity, props.project, "runs", run.id)}>{run.name}</Link>
              </th>
              <td>
                <StateBadge state={run.state} />
              </td>
              {columns.map((name, place) => (
                <td class="number" title={exactText(readers[place]!(run))}>
                  {shortText(name, readers[place]!(run))}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {props.runs.length > most && (
        <button class="link" onClick={() => setWhole(true)}>
          Show all {props.runs.length} runs
        </button>
      )}
    </div>
  );
}
