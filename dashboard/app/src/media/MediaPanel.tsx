// What one or several runs logged under a name, side by side, with one slider over the steps of all.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Dialog } from "../components/Dialog";
import { Icon } from "../components/Icon";
import { Loading } from "../components/States";
import { useSeen } from "../project/MetricChart";
import { CustomChart } from "./CustomChart";
import type { Files } from "./files";
import { HistogramsOverSteps } from "./HistogramView";
import { infoOf } from "./info";
import { Item } from "./Item";
import { itemsOf, kindOf, readLogged, type Logged, type Media, type MediaInfo } from "./values";

export interface MediaRun {
  key: number;
  /** How its part is called, and the colour of its mark; one run alone needs neither. */
  label?: string;
  colour?: string;
  url: (path: string) => string;
}

interface Part {
  run: MediaRun;
  info: MediaInfo;
  logged: Logged[];
}

interface Props {
  name: string;
  runs: readonly MediaRun[];
  /** Told anew when runs have logged more. */
  turn: number;
}

export function MediaPanel(props: Props) {
  const box = useRef<HTMLElement>(null);
  const isSeen = useSeen(box);
  const parts = useParts(props, isSeen);
  const steps = useMemo(() => [...new Set((parts ?? []).flatMap(({ logged }) => logged.map(({ step }) => step)))].sort((a, b) => a - b), [parts]);
  const [chosen, setChosen] = useState<number | null>(null);
  const place = chosen === null ? steps.length - 1 : Math.min(chosen, steps.length - 1);
  const step = steps[place];
  const isWide = (parts ?? []).some(({ logged, info }) => logged.some(({ value }) => kindOf(value) === "table") && !info.charts[props.name]) || props.runs.length > 1;
  return (
    <section ref={box} class={`card block media-panel${isWide ? " wide" : ""}`} aria-label={props.name}>
      <h2>
        {props.name} <span class="faint">{step === undefined ? "" : `step ${step.toLocaleString("en")}`}</span>
      </h2>
      {steps.length > 1 && (
        <input type="range" aria-label={`Step of ${props.name}`} min={0} max={steps.length - 1} value={place} onInput={(event) => setChosen(Number(event.currentTarget.value))} />
      )}
      {isSeen && !parts && <Loading />}
      <div class="side-by-side">
        {parts?.map((part) => (
          <PartView key={part.run.key} part={part} name={props.name} step={step ?? 0} choose={(at) => setChosen(steps.indexOf(at))} />
        ))}
      </div>
    </section>
  );
}

function useParts({ name, runs, turn }: Props, isSeen: boolean): Part[] | null {
  const [parts, setParts] = useState<Part[] | null>(null);
  const keys = runs.map((run) => run.key).join();
  useEffect(() => {
    if (!isSeen) return;
    let over = false;
    const load = async (run: MediaRun): Promise<Part> => {
      const info = await infoOf(run.key, turn);
      return { run, info, logged: await readLogged(run.key, info.charts[name]?.table ?? name) };
    };
    Promise.all(runs.map(load)).then(
      (loaded) => !over && setParts(loaded),
      () => !over && setParts((old) => old ?? []),
    );
    return () => {
      over = true;
    };
  }, [keys, name, turn, isSeen]);
  return parts;
}

function PartView({ part, name, step, choose }: { part: Part; name: string; step: number; choose: (step: number) => void }) {
  const { run, logged } = part;
  const place = logged.findLastIndex((entry) => entry.step <= step);
  const value = logged[place]?.value;
  return (
    <div class="part" role="group" aria-label={run.label}>
      {run.label && (
        <p class="part-name">
          <span class="swatch" style={{ background: run.colour }} /> <span class="words">{run.label}</span>
          {value && logged[place]!.step !== step && <span class="faint">step {logged[place]!.step.toLocaleString("en")}</span>}
        </p>
      )}
      {value ? <Values part={part} name={name} value={value} /> : <p class="faint">{logged.length ? "Nothing up to this step." : "Nothing under this name."}</p>}
      {value && kindOf(value) === "histogram" && logged.length > 1 && (
        <HistogramsOverSteps name={name} logged={logged} place={place} choose={(at) => choose(logged[at]!.step)} />
      )}
    </div>
  );
}

function Values({ part, name, value }: { part: Part; name: string; value: Media }) {
  const { run, info } = part;
  const [large, setLarge] = useState<number | null>(null);
  const files: Files = { url: run.url, labels: (kind, layer) => info[kind][name]?.[layer] ?? {} };
  const chart = info.charts[name];
  const items = chart ? [value] : itemsOf(value);
  const draw = (item: Media, enlarge?: () => void) =>
    chart ? <CustomChart chart={chart} value={item} name={name} files={files} /> : <Item value={item} name={items.length > 1 ? `${name}, ${items.indexOf(item) + 1}` : name} files={files} enlarge={enlarge} />;
  const canEnlarge = (item: Media) => chart || !["image", "audio", "histogram"].includes(kindOf(item));
  return (
    <div class={`items items-${chart ? "chart" : kindOf(value)}`}>
      {items.map((item, place) => (
        <div class="item-place" key={item.path ?? place}>
          {draw(item, () => setLarge(place))}
          {canEnlarge(item) && (
            <button class="quiet enlarge" aria-label={`Enlarge ${name}`} title="Enlarge" onClick={() => setLarge(place)}>
              <Icon name="full" size={14} />
            </button>
          )}
        </div>
      ))}
      {large !== null && items[large] && (
        <Dialog title={[items[large].caption ?? name, run.label].filter(Boolean).join(", ")} large close={() => setLarge(null)}>
          <div class="enlarged">{draw(items[large])}</div>
        </Dialog>
      )}
    </div>
  );
}
