// How much each parameter matters, in words as well as in bars.

import { useEffect, useState } from "preact/hooks";
import { get } from "../api";
import type { SweepData } from "./data";
import type { Importance as ImportanceAnswer } from "../shapes";

/** Where on the parameter's axis the best trials are. */
const WHERE = { lowest: "best at its lowest", between: "best in between", highest: "best at its highest" };

export function Importance({ data, metric }: { data: SweepData; metric: string }) {
  const [importance, setImportance] = useState<ImportanceAnswer | null>(null);
  const ended = data.rows.filter((trial) => trial.measured[metric] != null && trial.ended !== null).length;
  useEffect(() => {
    let over = false;
    get<ImportanceAnswer>(`api/sweeps/${data.sweep.key}/importance`, { query: { metric } }).then(
      (answer) => !over && setImportance(answer),
      () => undefined,
    );
    return () => {
      over = true;
    };
  }, [data.sweep.key, metric, ended]);
  if (!importance) return <p class="soft card-body">…</p>;
  if (importance.explained === null) {
    return (
      <p class="soft card-body">
        {importance.trials < importance.needed
          ? `With ${importance.trials} of ${importance.needed} trials that have ${metric}, it is too early to tell what matters.`
          : `All trials have the same ${metric}: nothing makes a difference.`}
      </p>
    );
  }
  return (
    <div class="importance card-body">
      <ul>
        {importance.parameters.map((parameter) => (
          <li key={parameter.name} class={parameter.is_sure ? "" : "unsure"}>
            <span class="importance-name" title={parameter.name}>
              {parameter.name}
            </span>
            <span class="importance-bar">
              <span style={{ width: `${Math.min(100, parameter.share * 100)}%` }} />
            </span>
            <span class="importance-share">{percent(parameter.share)}</span>
            <span class="importance-words">{parameter.is_sure ? parameter.best && WHERE[parameter.best] : "may be chance"}</span>
          </li>
        ))}
      </ul>
      <p class="faint">
        {`Single parameters explain ${percent(importance.explained)} of the variation in ${metric} over ${importance.trials} trials; the rest is interaction or noise. `}
        Trials are ranked, so one that diverged counts as the worst and not as a million times worse.
      </p>
    </div>
  );
}

function percent(share: number): string {
  return share < 0.005 ? "0 %" : `${Math.round(share * 100)} %`;
}
