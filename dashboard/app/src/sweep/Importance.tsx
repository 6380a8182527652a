// How much each parameter matters, in words as well as in bars.

import { useEffect, useState } from "preact/hooks";
import { get } from "../api";
import type { Metric, SweepData } from "./data";

interface Told {
  metric: string;
  trials: number;
  needed: number;
  explained: number | null;
  parameters: { name: string; share: number; is_sure: boolean; direction: number | null }[];
}

export function Importance({ data, metric }: { data: SweepData; metric: string }) {
  const [told, setTold] = useState<Told | null>(null);
  const ended = data.rows.filter((trial) => trial.measured[metric] != null && trial.ended !== null).length;
  useEffect(() => {
    let over = false;
    get<Told>(`api/sweeps/${data.sweep.key}/importance`, { query: { metric } }).then(
      (found) => !over && setTold(found),
      () => undefined,
    );
    return () => {
      over = true;
    };
  }, [data.sweep.key, metric, ended]);
  if (!told) return <p class="soft card-body">…</p>;
  if (told.explained === null) {
    return (
      <p class="soft card-body">
        {told.trials < told.needed
          ? `With ${told.trials} of ${told.needed} trials that have ${metric}, it is too early to tell what matters.`
          : `All trials have the same ${metric}: nothing makes a difference.`}
      </p>
    );
  }
  const aim = data.metrics.find((one) => one.name === metric);
  return (
    <div class="importance card-body">
      <ul>
        {told.parameters.map((one) => (
          <li key={one.name} class={one.is_sure ? "" : "unsure"}>
            <span class="importance-name" title={one.name}>
              {one.name}
            </span>
            <span class="importance-bar">
              <span style={{ width: `${Math.min(100, one.share * 100)}%` }} />
            </span>
            <span class="importance-share">{percent(one.share)}</span>
            <span class="importance-words">{one.is_sure ? inWords(one.direction, aim) : "may be chance"}</span>
          </li>
        ))}
      </ul>
      <p class="faint">
        {`Of what tells ${told.trials} trials apart in ${metric}, ${percent(told.explained)} goes with single parameters; the rest is their interplay, or luck. `}
        Trials are ranked, so one that diverged counts as the worst and not as a million times worse.
      </p>
    </div>
  );
}

function percent(share: number): string {
  return share < 0.005 ? "0 %" : `${Math.round(share * 100)} %`;
}

function inWords(direction: number | null, aim: Metric | undefined): string {
  if (direction === null) return "";
  if (Math.abs(direction) < 0.3) return "best somewhere between";
  const better = (direction > 0) === (aim?.goal === "maximize");
  return better ? "higher is better" : "lower is better";
}
