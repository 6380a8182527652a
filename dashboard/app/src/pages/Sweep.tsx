// A sweep: how far it is, what won, what matters, and every trial.

import { useMemo } from "preact/hooks";
import { StateBadge } from "../components/Badge";
import { Copied } from "../components/Copied";
import { Link } from "../components/Link";
import { Empty, Loading, Trouble } from "../components/States";
import { exactText, formatAgo, formatDuration, formatNumber, plural } from "../format";
import { pathOf } from "../root";
import { navigate, useQuery } from "../router";
import type { PageProps } from "../routes";
import type { SweepBudget } from "../shapes";
import { brushed, useBrushes } from "../sweep/chosen";
import { useSweep, type SweepData, type Trial } from "../sweep/data";
import { Dots } from "../sweep/Dots";
import { Importance } from "../sweep/Importance";
import { Parallel } from "../sweep/Parallel";
import { ORDER_SCALE, scaleNames, scaleOf } from "../sweep/scales";
import { Space } from "../sweep/Space";
import { Steering } from "../sweep/Steering";
import { Trials } from "../sweep/Trials";
import "../style/sweep.css";

export default function SweepPage({ entity, project, id }: PageProps) {
  const { data, error, again } = useSweep(entity, project, id);
  const [brushes, setBrushes] = useBrushes();
  const [wantedMetric, setMetric] = useQuery("metric");
  const chosen = useMemo(() => (data ? brushed(data, brushes) : null), [data, brushes]);
  if (error && !data) return <Trouble error={error} again={again} />;
  if (!data) return <Loading />;
  const metric = (data.measuredNames.includes(wantedMetric) ? wantedMetric : null) ?? data.metrics[0]?.name ?? data.measuredNames[0] ?? null;
  const open = (trial: Trial) => trial.run !== null && navigate(pathOf(entity, project, "runs", trial.id));
  return (
    <div class="sweep">
      <Head data={data} entity={entity} project={project} again={again} />
      <Progress data={data} entity={entity} project={project} />
      {data.rows.length === 0 ? (
        <Empty what="No trials yet" command={`runyard sweep ${data.sweep.id}`}>
          {data.sweep.state === "running" ? "The sweep waits for an agent. Start one here, or submit agents to Slurm with --on slurm." : "The sweep ended before a trial began."}
        </Empty>
      ) : (
        <>
          <section class="card" aria-label="Parallel coordinates">
            <header class="card-head">
              <h2>Settings and results</h2>
              <span class="faint wide-only">drag along an axis to choose trials</span>
              {chosen && (
                <button class="link" onClick={() => setBrushes({})}>
                  {`${chosen.size} of ${plural(data.rows.length, "trial")} chosen: show all`}
                </button>
              )}
              {data.measuredNames.length > 1 && <Choice label="Metric" value={metric ?? ""} names={data.measuredNames} change={setMetric} class="right" />}
            </header>
            <Parallel data={data} metric={metric} brushes={brushes} onBrush={setBrushes} chosen={chosen} onOpen={open} />
          </section>
          <div class="sweep-grid">
            {metric && (
              <section class="card" aria-label="Importance of parameters">
                <header class="card-head">
                  <h2>What matters for {metric}</h2>
                </header>
                <Importance data={data} metric={metric} />
              </section>
            )}
            {metric && <Convergence data={data} metric={metric} chosen={chosen} open={open} />}
            <Scatter data={data} metric={metric} chosen={chosen} open={open} />
            {data.metrics.length > 1 && <Front data={data} chosen={chosen} open={open} />}
            <section class="card" aria-label="Search space">
              <header class="card-head">
                <h2>Search space</h2>
                <span class="faint">{`${data.sweep.method}, ${plural(data.parameters.length, "parameter")}`}</span>
              </header>
              <Space data={data} metric={metric} />
            </section>
          </div>
          <section class="card trials" aria-label="Trials">
            <header class="card-head">
              <h2>Trials</h2>
              <span class="faint">{chosen ? `${chosen.size} of ${data.rows.length}` : data.rows.length}</span>
            </header>
            <Trials data={data} entity={entity} project={project} chosen={chosen} onOpen={open} />
          </section>
        </>
      )}
      <details class="card sweep-file">
        <summary>The sweep's file</summary>
        <pre>{data.text}</pre>
      </details>
    </div>
  );
}

function Head({ data, entity, project, again }: { data: SweepData; entity: string; project: string; again: () => void }) {
  const { sweep } = data;
  return (
    <div class="sweep-head">
      <h1>{sweep.name}</h1>
      <StateBadge state={sweep.state} />
      <span class="soft">
        {sweep.method}
        {sweep.name !== sweep.id && <span class="mono faint"> {sweep.id}</span>}
      </span>
      {sweep.description && <span class="soft">{sweep.description}</span>}
      <div class="right">
        <Steering sweep={sweep} done={again} />
      </div>
      {sweep.cause && (
        <p class="sweep-cause" role="alert">
          {sweep.cause}
        </p>
      )}
      {sweep.chance !== null && (
        <p class="soft sweep-chance">
          Stop? No new setting is likely to beat the best by more than 1 % (chance {chanceWords(sweep.chance)}). Stop lets the
          running trials end.
        </p>
      )}
      {sweep.budget && !sweep.cause && <p class="soft sweep-budget">{budgetWords(sweep.budget)}</p>}
      <Link to={`${pathOf(entity, project)}?q=${encodeURIComponent(`sweep = ${sweep.id}`)}`} class="sr-only">
        The runs of this sweep
      </Link>
    </div>
  );
}

function chanceWords(chance: number): string {
  return chance < 0.001 ? "under 0.1 %" : `${(100 * chance).toFixed(1)} %`;
}

function budgetWords({ limit, unit, used, planned }: SweepBudget): string {
  const hours = (amount: number) => amount.toLocaleString("en", { maximumSignificantDigits: amount >= 10 ? 4 : 3 });
  const more = planned - used >= 0.01 * limit ? `, ${hours(planned)} when what has begun has ended` : "";
  return `Budget: ${hours(used)} of ${hours(limit)} ${unit === "gpu-hours" ? "GPU-hours" : "hours"} used${more}.`;
}

const PARTS = [
  ["finished", "finished"],
  ["stopped", "stopped early"],
  ["failed", "failed"],
  ["canceled", "cancelled"],
  ["running", "running"],
  ["paused", "paused"],
  ["waiting", "waiting"],
] as const;

function Progress({ data, entity, project }: { data: SweepData; entity: string; project: string }) {
  const { sweep } = data;
  const whole = Math.max(sweep.expected ?? sweep.trials, sweep.trials, 1);
  const ended = PARTS.slice(0, 4).reduce((sum, [name]) => sum + (sweep.counts[name] ?? 0), 0);
  const slots = sweep.agents.reduce((sum, agent) => sum + agent.slots, 0);
  const best = sweep.best;
  return (
    <section class="card progress" aria-label="Progress">
      <div class="progress-facts">
        <Fact label="done">
          {formatNumber(ended)} <span class="soft">{sweep.expected === null ? "trials, no end set" : `of ${formatNumber(sweep.expected)}`}</span>
        </Fact>
        <Fact label="best so far">
          {best && best.value !== null ? (
            <>
              {formatNumber(best.value)} <span class="soft">{sweep.metric}, </span>
              <Link to={pathOf(entity, project, "runs", best.id)}>{best.name}</Link>
            </>
          ) : (
            <span class="soft">{sweep.metric ? `no trial has ${sweep.metric} yet` : "no metric named"}</span>
          )}
        </Fact>
        <Fact label={sweep.ended_at ? "took" : "time left"}>
          {sweep.ended_at ? (
            formatDuration(sweep.ended_at - (sweep.started_at ?? sweep.created_at))
          ) : sweep.eta_seconds === null ? (
            <span class="soft">{sweep.expected === null ? "no end set" : slots ? "known when a trial has ended" : "no agent at work"}</span>
          ) : (
            <>about {formatDuration(sweep.eta_seconds)}</>
          )}
        </Fact>
        <Fact label="agents">
          {sweep.agents.length === 0 ? (
            <span class="soft">none</span>
          ) : (
            <>
              {formatNumber(sweep.agents.length)}{" "}
              <span class="soft">
                {sweep.counts.running ?? 0} of {plural(slots, "slot")} busy
              </span>
            </>
          )}
        </Fact>
        <Fact label="started">{formatAgo(sweep.started_at ?? sweep.created_at)}</Fact>
      </div>
      <div class="progress-bar" role="progressbar" aria-valuemin={0} aria-valuemax={whole} aria-valuenow={ended} aria-label="Trials that have ended">
        {PARTS.map(([name]) => {
          const count = sweep.counts[name] ?? 0;
          return count > 0 && <span key={name} class={`part-${name}`} style={{ width: `${(count / whole) * 100}%` }} />;
        })}
      </div>
      <div class="progress-legend">
        {PARTS.map(([name, says]) => {
          const count = sweep.counts[name] ?? 0;
          return (
            count > 0 && (
              <span key={name}>
                <i class={`part-${name}`} /> {formatNumber(count)} {says}
              </span>
            )
          );
        })}
        {sweep.attempts > sweep.trials && <span class="faint">{`${formatNumber(sweep.attempts)} attempts in all`}</span>}
      </div>
      {best && (
        <div class="best-values">
          <span class="faint">best setting</span>
          {Object.entries(data.rows.find((trial) => trial.number === best.number)?.values ?? {}).map(([name, value]) => (
            <code key={name}>{`${name}=${exactText(value)}`}</code>
          ))}
          <Copied text={`runyard show ${sweep.id} --best`} />
        </div>
      )}
    </section>
  );
}

function Fact({ label, children }: { label: string; children: preact.ComponentChildren }) {
  return (
    <div class="fact">
      <span class="fact-label">{label}</span>
      <span class="fact-value">{children}</span>
    </div>
  );
}

interface ChartProps {
  data: SweepData;
  chosen: Set<number> | null;
  open: (trial: Trial) => void;
}

function Convergence({ data, metric, chosen, open }: ChartProps & { metric: string }) {
  const x = useMemo(() => scaleOf(data, ORDER_SCALE), [data]);
  const y = useMemo(() => scaleOf(data, metric), [data, metric]);
  const steps = useMemo(() => {
    if (metric !== data.metrics[0]?.name) return [];
    const ends = data.rows.map((trial) => trial.ended ?? 0);
    const order = new Map(data.rows.map((trial) => [trial.number, trial.ended ?? 0]));
    const steps = data.convergence.map((step) => ({ x: x.placeOf!(order.get(step.number) ?? 0), y: y.placeOf!(step.value) }));
    const last = steps.at(-1);
    return last ? [...steps, { x: x.placeOf!(Math.max(...ends)), y: last.y }] : [];
  }, [data, x, y, metric]);
  return (
    <section class="card" aria-label="Convergence">
      <header class="card-head">
        <h2>Convergence</h2>
        <span class="faint">{metric} of each trial, and the best so far</span>
      </header>
      <Dots label="Convergence" data={data} x={x} y={y} colour={y} chosen={chosen} steps={steps} onOpen={open} note="no trial has ended yet" />
    </section>
  );
}

function Scatter({ data, metric, chosen, open }: ChartProps & { metric: string | null }) {
  const names = scaleNames(data);
  const [xName, setX] = useQuery("x", data.parameters[0]?.name ?? names[0]);
  const [yName, setY] = useQuery("y", metric ?? names[1] ?? names[0]);
  const [colourName, setColour] = useQuery("colour", metric ?? names[0]);
  const known = (name: string) => (names.includes(name) ? name : names[0]!);
  const x = useMemo(() => scaleOf(data, known(xName)), [data, xName]);
  const y = useMemo(() => scaleOf(data, known(yName)), [data, yName]);
  const colour = useMemo(() => scaleOf(data, known(colourName)), [data, colourName]);
  return (
    <section class="card" aria-label="Scatter">
      <header class="card-head">
        <h2>Scatter</h2>
        <div class="row wrap right">
          <Choice label="y" value={y.name} names={names} change={setY} />
          <Choice label="over" value={x.name} names={names} change={setX} />
          <Choice label="colour" value={colour.name} names={names} change={setColour} />
        </div>
      </header>
      <Dots label="Scatter" data={data} x={x} y={y} colour={colour} chosen={chosen} onOpen={open} />
    </section>
  );
}

function Front({ data, chosen, open }: ChartProps) {
  const [first, second] = data.metrics;
  const x = useMemo(() => scaleOf(data, first!.name), [data]);
  const y = useMemo(() => scaleOf(data, second!.name), [data]);
  const front = useMemo(() => new Set(data.front), [data]);
  const steps = useMemo(() => {
    if (data.metrics.length !== 2) return [];
    const on = data.rows.filter((trial) => front.has(trial.number)).map((trial) => ({ x: x.place(trial)!, y: y.place(trial)! }));
    return on.sort((a, b) => a.x - b.x);
  }, [data, front]);
  return (
    <section class="card" aria-label="Pareto front">
      <header class="card-head">
        <h2>Pareto front</h2>
        <span class="faint">{`${plural(data.front.length, "trial")} that no other beats in ${data.metrics.map((metric) => metric.name).join(" and ")}`}</span>
      </header>
      <Dots label="Pareto front" data={data} x={x} y={y} colour={x} chosen={chosen} marked={front} steps={steps} onOpen={open} />
    </section>
  );
}

function Choice(props: { label: string; value: string; names: string[]; change: (name: string) => void; class?: string }) {
  return (
    <label class={`choice ${props.class ?? ""}`}>
      <span>{props.label}</span>
      <select aria-label={props.label} value={props.value} onChange={(event) => props.change(event.currentTarget.value)}>
        {props.names.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  );
}
