// The trials of a sweep as a table.

import { useMemo, useState } from "preact/hooks";
import { StateBadge } from "../components/Badge";
import { Link } from "../components/Link";
import { Table, useColumns, type Column, type Sort } from "../components/Table";
import { exactText, formatAgo, formatDuration, formatNumber } from "../format";
import { useObserved } from "../observe";
import { pathOf } from "../root";
import { pointed } from "./chosen";
import { isEarly, type SweepData, type Trial } from "./data";

interface Props {
  data: SweepData;
  entity: string;
  project: string;
  chosen: Set<number> | null;
  onOpen: (trial: Trial) => void;
}

export function Trials({ data, entity, project, chosen, onOpen }: Props) {
  const [sort, setSort] = useState<Sort>({ name: "number", descending: true });
  const at = useObserved(pointed);
  const names = data.parameters.map((parameter) => parameter.name).join("\0");
  const metrics = data.measuredNames.join("\0");
  const columns = useColumns<Trial>(() => columnsOf(data, entity, project), [names, metrics, entity, project, data.sweep.best?.number]);
  const rows = useMemo(() => {
    const shown = chosen ? data.rows.filter((trial) => chosen.has(trial.number)) : data.rows;
    const read = reader(sort.name);
    const sign = sort.descending ? -1 : 1;
    return [...shown].sort((a, b) => compare(read(a), read(b), sign));
  }, [data, chosen, sort]);
  return (
    <Table
      label="Trials"
      columns={columns}
      rows={rows}
      rowKey={(trial) => trial.number}
      sort={sort}
      onSort={setSort}
      onOpen={onOpen}
      onHover={(trial) => pointed.set(trial?.number ?? null)}
      rowClass={(trial) => `${trial.number === at ? "hovered" : ""}${isEarly(trial) ? " early" : ""}`}
      empty={<div class="table-empty">{chosen ? "No trial lies in all brushes." : "No trials yet."}</div>}
    />
  );
}

function columnsOf(data: SweepData, entity: string, project: string): Column<Trial>[] {
  const best = data.sweep.best?.number;
  return [
    {
      name: "name",
      label: "trial",
      width: 200,
      held: true,
      sortable: true,
      cell: (trial) => (
        <>
          <span class="faint trial-number">{trial.number}</span>
          {trial.run === null ? <span class="words">{trial.name}</span> : <Link to={pathOf(entity, project, "runs", trial.id)} class="words">{trial.name}</Link>}
          {trial.number === best && <span class="tag">best</span>}
        </>
      ),
    },
    {
      name: "state",
      label: "state",
      width: 150,
      sortable: true,
      cell: (trial) => (
        <>
          <StateBadge state={trial.state} />
          {isEarly(trial) && (
            <span class="tag early-tag" title="The search stopped it early: others were better by then">
              early
            </span>
          )}
          {!isEarly(trial) && trial.cause && trial.cause !== trial.state && <span class="faint words">{trial.cause}</span>}
        </>
      ),
    },
    ...data.measuredNames.flatMap((name) => {
      const aim = data.metrics.find((metric) => metric.name === name);
      const shared = { width: Math.min(220, Math.max(116, 70 + name.length * 7)), number: true, sortable: true, isLowBest: aim?.goal === "minimize" };
      const best = {
        ...shared,
        name: `m:${name}`,
        // Each trial counts by the best value that it has logged.
        label: `${name} (best)`,
        title: `The best ${name} that the trial has logged: the sweep ranks by it`,
        cell: (trial: Trial) => value(trial.measured[name]),
      };
      if (!aim) return [best];
      const last = {
        ...shared,
        name: `l:${name}`,
        label: `${name} (last)`,
        title: `The ${name} in the summary of the trial's run`,
        cell: (trial: Trial) => value(trial.last[name]),
      };
      return [best, last];
    }),
    ...data.parameters.map((parameter) => ({
      name: `p:${parameter.name}`,
      label: parameter.name,
      width: 116,
      number: parameter.categories === 0,
      sortable: true,
      cell: (trial: Trial) => setting(trial.values[parameter.name]),
    })),
    { name: "seconds", label: "duration", width: 96, number: true, sortable: true, cell: (trial) => formatDuration(trial.state === "running" && trial.began_at ? trial.seconds + Date.now() / 1000 - trial.began_at : trial.seconds) },
    { name: "attempts", label: "attempts", width: 84, number: true, sortable: true, cell: (trial) => formatNumber(trial.attempts) },
    { name: "host", label: "host", width: 130, sortable: true, cell: (trial) => <span class="words">{trial.host ?? "–"}</span> },
    { name: "ended_at", label: "ended", width: 110, sortable: true, cell: (trial) => formatAgo(trial.ended_at) },
  ];
}

/** A number that is wider than its column loses its last digits, not its first ones. */
function setting(value: unknown) {
  if (value == null) return <span class="none">–</span>;
  return (
    <span class="words" title={exactText(value)}>
      {exactText(value)}
    </span>
  );
}

function value(number: number | null | undefined) {
  return number == null ? <span class="none">–</span> : formatNumber(number);
}

function reader(name: string): (trial: Trial) => unknown {
  if (name.startsWith("m:")) return (trial) => trial.measured[name.slice(2)];
  if (name.startsWith("l:")) return (trial) => trial.last[name.slice(2)];
  if (name.startsWith("p:")) return (trial) => trial.values[name.slice(2)];
  return (trial) => (trial as unknown as Record<string, unknown>)[name];
}

/** What is missing comes last, whichever way one sorts. */
function compare(a: unknown, b: unknown, sign: number): number {
  if (a == null || b == null) return (a == null ? 1 : 0) - (b == null ? 1 : 0);
  if (typeof a === "number" && typeof b === "number") return sign * (a - b);
  return sign * String(a).localeCompare(String(b), undefined, { numeric: true });
}
