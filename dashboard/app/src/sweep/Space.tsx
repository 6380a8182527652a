// The search space: what each parameter can be, and what has been tried.

import { shade } from "../colours";
import { exactText, formatValue } from "../format";
import { useObserved } from "../observe";
import { theme } from "../theme";
import type { Parameter, SweepData } from "./data";
import { metricScale, ranked } from "./scales";

const MOST_DOTS = 600;

export function Space({ data, metric }: { data: SweepData; metric: string | null }) {
  return (
    <ul class="space card-body">
      {data.parameters.map((parameter) => (
        <Strip key={parameter.name} parameter={parameter} data={data} metric={metric} />
      ))}
    </ul>
  );
}

function Strip({ parameter, data, metric }: { parameter: Parameter; data: SweepData; metric: string | null }) {
  const colours = useObserved(theme);
  const good = metric ? ranked(data, metricScale(data, metric)) : () => null;
  const tried = data.rows.slice(-MOST_DOTS);
  const best = data.sweep.best;
  return (
    <li>
      <div class="space-words">
        <b>{parameter.name}</b> <span class="soft">{parameter.said}</span>
        {best && parameter.name in (bestTrial(data)?.values ?? {}) && (
          <span class="faint right">best: {exactText(bestTrial(data)!.values[parameter.name])}</span>
        )}
      </div>
      <svg class="space-strip" viewBox="0 0 100 16" preserveAspectRatio="none" aria-hidden="true">
        <line x1="0" x2="100" y1="8" y2="8" />
        {tried.map((trial) => {
          const place = trial.places[parameter.name];
          const value = good(trial);
          return place == null ? null : <line key={trial.number} class="tried" x1={place * 100} x2={place * 100} y1={2 + spread(trial.number) * 4} y2={10 + spread(trial.number) * 4} style={{ stroke: value === null ? "var(--faint)" : shade(value, colours) }} />;
        })}
      </svg>
      <div class="space-ticks">
        {thinned(parameter).map((tick) => (
          <span key={tick.place} style={{ left: `${tick.place * 100}%` }} class={tick.place < 0.02 ? "first" : tick.place > 0.98 ? "last" : ""}>
            {short(tick.value)}
          </span>
        ))}
      </div>
    </li>
  );
}

function bestTrial(data: SweepData) {
  return data.rows.find((trial) => trial.number === data.sweep.best?.number);
}

function thinned(parameter: Parameter): Parameter["ticks"] {
  const most = 7;
  if (parameter.ticks.length <= most) return parameter.ticks;
  const last = parameter.ticks.length - 1;
  return Array.from({ length: most }, (_, place) => parameter.ticks[Math.round((place * last) / (most - 1))]!);
}

function short(value: unknown): string {
  const text = typeof value === "number" ? String(Number(value.toPrecision(3))) : formatValue(value);
  return text.length > 14 ? `${text.slice(0, 13)}…` : text;
}

/** The same for the same trial each time, so that nothing dances. */
function spread(number: number): number {
  return ((number * 7919) % 97) / 97;
}
