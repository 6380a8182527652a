// One metric over the runs that are shown, or over groups of them.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Line } from "../chart/lines";
import { Chart } from "../components/Chart";
import type { Action } from "../components/Menu";
import { colourOf } from "../colours";
import { plural } from "../format";
import { useObserved } from "../observe";
import { theme, type Theme } from "../theme";
import { fetchCurves, type ChartState, type Curve, type CurveStore } from "./curves";
import type { Group } from "./useProject";
import type { Run } from "./runs";
import { askedX, change, kindOfX, labelOfX, xOf, type Defined, type ProjectView } from "./view";

interface Props {
  metric: string;
  store: CurveStore;
  runs: readonly Run[];
  groups: readonly Group[] | null;
  view: ProjectView;
  /** Told anew when runs have new points. */
  turn: number;
  defined?: Defined;
  height?: number;
}

/** What a chart without lines says. */
const SAYS: Record<ChartState, string> = {
  loading: "loading…",
  failed: "The server does not answer. Asked again every few seconds.",
  absent: "none of these runs has it",
  shown: "",
};

interface Lines {
  lines: Line[];
  state: ChartState;
}

export function MetricChart(whole: Props) {
  const x = xOf(whole.metric, whole.view.x, whole.defined);
  const view = useMemo(() => (x === whole.view.x ? whole.view : { ...whole.view, x, zoom: null }), [whole.view, x]);
  const props = { ...whole, view, store: whole.store.over(askedX(x)) };
  const box = useRef<HTMLDivElement>(null);
  const isSeen = useSeen(box);
  return (
    <div ref={box} style={{ minHeight: `${props.height ?? 236}px` }}>
      {isSeen && (props.groups ? <OfGroups {...props} groups={props.groups} /> : <OfRuns {...props} />)}
    </div>
  );
}

function OfRuns(props: Props) {
  return <Drawn {...props} drawn={useRunLines(props)} />;
}

function OfGroups(props: Props & { groups: readonly Group[] }) {
  return <Drawn {...props} drawn={useGroupLines(props, props.groups)} />;
}

function Drawn(props: Props & { drawn: Lines }) {
  const { metric, view } = props;
  const { lines, state } = props.drawn;
  const isLog = view.logY.has(metric) || view.logY.has("*");
  const actions: Action[] = [
    {
      says: "Logarithmic y",
      checked: isLog,
      act: () => {
        const next = new Set(view.logY);
        if (isLog) next.delete(metric);
        else next.add(metric);
        change.logY(next);
      },
    },
  ];
  return (
    <Chart
      title={metric}
      note={noteOf(lines, props)}
      lines={lines}
      state={state}
      empty={emptyOf(state, view.x, props.runs.length)}
      xLabel={labelOfX(view.x)}
      xKind={kindOfX(view.x)}
      logX={view.logX}
      logY={isLog}
      smoothing={view.smoothing}
      zoom={view.zoom}
      onZoom={change.zoom}
      height={props.height}
      actions={actions}
    />
  );
}

function emptyOf(state: ChartState, x: string, runs: number): string {
  if (state !== "absent") return SAYS[state];
  if (!runs) return "no runs to draw";
  return askedX(x) === null ? SAYS.absent : `none of these runs has it beside ${labelOfX(x)}`;
}

function noteOf(lines: readonly Line[], props: Props): string {
  if (!props.groups || !lines.length) return "";
  const what = { std: "standard deviation", stderr: "standard error", range: "smallest to largest" }[props.view.spread];
  return `mean, ${what}`;
}

/** Nothing is fetched or drawn for what was never on the screen. */
export function useSeen(box: { current: HTMLElement | null }): boolean {
  const [isSeen, setSeen] = useState(false);
  useEffect(() => {
    if (!box.current || isSeen) return;
    const watch = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && setSeen(true), { rootMargin: "200px" });
    watch.observe(box.current);
    return () => watch.disconnect();
  }, [isSeen]);
  return isSeen;
}

function useRunLines({ metric, store, runs }: Props): Lines {
  const colours = useObserved(theme);
  const [turn, setTurn] = useState(0);
  const keys = runs.map((run) => run.key).join();
  // Both before the chart is made: the server reads meanwhile.
  useLayoutEffect(() => store.listen(metric, () => setTurn((count) => count + 1)), [store, metric]);
  useLayoutEffect(() => {
    store.want(metric, runs.map((run) => run.key));
    return () => store.leave(metric);
  }, [store, metric, keys]);
  return useMemo(() => {
    const lines: Line[] = [];
    for (const run of runs) {
      const curve = store.find(metric, run.key);
      if (curve) lines.push(runLine(run, curve, colours));
    }
    // The first of the table lies on top.
    return { lines: lines.reverse(), state: lines.length ? "shown" : store.state(metric, runs) };
  }, [store, metric, keys, colours, turn]);
}

function useGroupLines(props: Props, groups: readonly Group[]): Lines {
  const colours = useObserved(theme);
  const { metric, store, turn, view } = props;
  const [curves, setCurves] = useState<Map<number, Curve> | null>(null);
  const [hasFailed, setFailed] = useState(false);
  const members = groups.map((group) => group.runs.join()).join(";");
  useEffect(() => {
    let over = false;
    const points = Math.min(400, store.setting.points);
    fetchCurves({ ...store.setting, points }, [metric], { groups: groups.map((group) => group.runs) }).then(
      (answer) => {
        if (over) return;
        setFailed(false);
        setCurves(new Map(answer.map((curve) => [curve.group!, curve])));
      },
      () => !over && setFailed(true),
    );
    return () => {
      over = true;
    };
  }, [store, metric, members, turn]);
  return useMemo(() => {
    if (!curves) return { lines: [], state: hasFailed ? "failed" : "loading" };
    const lines = groups.flatMap((group, place) => {
      const curve = curves.get(place);
      return curve ? [groupLine(group, curve, view.spread, colours)] : [];
    });
    return { lines, state: lines.length ? "shown" : "absent" };
  }, [curves, members, colours, view.spread, hasFailed]);
}

const NOTHING = { x: new Float64Array(), y: new Float32Array(), low: null, high: null };

export function runLine(run: Run, curve: Curve | null, colours: Theme): Line {
  const { x, y, low, high } = curve ?? NOTHING;
  return { key: run.key, label: run.name, colour: colourOf(run.key, colours), x, y, low, high };
}

export function groupLine(group: Group, curve: Curve, spread: ProjectView["spread"], colours: Theme): Line {
  const [low, high] = spreadOf(curve, spread);
  const label = `${group.label} (${plural(group.runs.length, "run")})`;
  return { key: group.label, label, colour: colourOf(group.turn, colours), x: curve.x, y: curve.y, low, high, group: true };
}

function spreadOf(curve: Curve, spread: ProjectView["spread"]): [Float32Array | null, Float32Array | null] {
  const { deviation, runs, y } = curve;
  if (spread === "range" || !deviation) return [curve.low, curve.high];
  const width = (place: number) => (spread === "std" || !runs ? deviation[place]! : deviation[place]! / Math.sqrt(Math.max(1, runs[place]!)));
  return [y.map((value, place) => value - width(place)), y.map((value, place) => value + width(place))];
}
