// A chart with its title, its tools and the values under the pointer.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { PICTURES, saveCsv, savePicture } from "../chart/export";
import type { Line, Span } from "../chart/lines";
import { Plot, type Pointer, type View, type XKind } from "../chart/plot";
import { formatDuration, formatNumber, formatTime } from "../format";
import { theme } from "../theme";
import { Dialog } from "./Dialog";
import { Icon } from "./Icon";
import { Legend } from "./Legend";
import { Menu, type Action } from "./Menu";
import { attempt } from "./Toasts";

export interface ChartProps {
  title: string;
  note?: string;
  lines: readonly Line[];
  /** What x is, for people: "step", "time". */
  xLabel?: string;
  xKind?: XKind;
  logX?: boolean;
  logY?: boolean;
  /** 0 (as it was logged) to 0.99. */
  smoothing?: number;
  bands?: boolean;
  zoom?: Span | null;
  onZoom?: (span: Span | null) => void;
  height?: number;
  /** What stands where there are no lines. */
  empty?: string;
  /** For whoever tests: which of the states of a chart it is. */
  state?: string;
  actions?: Action[];
  tools?: ComponentChildren;
}

export function Chart(props: ChartProps) {
  const [isFull, setFull] = useState(false);
  return (
    <section class="chart" aria-label={`Chart of ${props.title}`} style={{ height: `${props.height ?? 236}px` }}>
      <Body {...props} full={() => setFull(true)} />
      {isFull && (
        <Dialog title={props.title} large close={() => setFull(false)}>
          <div class="chart bare">
            <Body {...props} />
          </div>
        </Dialog>
      )}
    </section>
  );
}

const SHOWN_IN_TIP = 6;

function Body(props: ChartProps & { full?: () => void }) {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<Plot | null>(null);
  const [pointer, setPointer] = useState<Pointer | null>(null);
  const zoomed = useRef(props.onZoom);
  zoomed.current = props.onZoom;
  const { lines, logX, logY, xKind, xLabel, smoothing, bands, zoom } = props;
  const low = zoom?.[0];
  const high = zoom?.[1];
  const view = useMemo<View>(
    () => ({
      lines,
      logX: !!logX,
      logY: !!logY,
      xKind: xKind ?? "number",
      xName: xLabel ?? "",
      weight: smoothing ?? 0,
      bands: bands ?? true,
      zoom: low === undefined || high === undefined ? null : [low, high],
    }),
    [lines, logX, logY, xKind, xLabel, smoothing, bands, low, high],
  );
  useEffect(() => {
    const made = new Plot(host.current!, view, { zoom: (span) => zoomed.current?.(span), point: setPointer });
    plot.current = made;
    const stop = theme.listen(() => made.repaint());
    return () => {
      stop();
      made.close();
      plot.current = null;
    };
  }, []);
  useEffect(() => plot.current?.show(view), [view]);

  // While lines are fetched anew, the plot does not jump.
  const named = useRef(lines);
  if (lines.length || props.state !== "loading") named.current = lines;
  const saving: Action[] = [
    ...(props.actions ?? []),
    ...PICTURES.map((kind): Action => ({
      says: `Save as ${kind.toUpperCase()}`,
      icon: "save",
      act: () => plot.current && void attempt(savePicture(kind, plot.current, view, props.title || "chart")),
    })),
    { says: "Save as CSV", icon: "save", act: () => saveCsv(lines, props.title || "chart", props.xLabel ?? "x") },
  ];
  return (
    <>
      <div class="chart-head">
        <h3 class="chart-title" title={props.title}>
          {props.title} {props.note && <small>{props.note}</small>}
        </h3>
        <div class="chart-tools">
          {props.tools}
          {zoom && (
            <button class="quiet" title="Show everything again" onClick={() => props.onZoom?.(null)}>
              reset
            </button>
          )}
          {props.full && (
            <button class="quiet" aria-label={`${props.title}: full screen`} title="Full screen" onClick={props.full}>
              <Icon name="full" size={14} />
            </button>
          )}
          <Menu label={`${props.title}: more`} button={<Icon name="more" size={14} />} items={saving} />
        </div>
      </div>
      <Legend lines={named.current} isWhole={!props.full} />
      <div class="plot" ref={host} data-state={props.state}>
        {lines.length === 0 && <div class="empty" role="status">{props.empty ?? "no values yet"}</div>}
        {pointer && lines.length > 0 && <Tip pointer={pointer} kind={view.xKind} xLabel={props.xLabel ?? ""} plot={host.current!} />}
      </div>
    </>
  );
}

const AWAY = 14;
const EDGE = 8;

/** Beside the pointer, over whatever is there: only the window's edge holds it. */
function Tip({ pointer, kind, xLabel, plot }: { pointer: Pointer; kind: XKind; xLabel: string; plot: HTMLElement }) {
  const tip = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const element = tip.current;
    if (!element) return;
    const box = plot.getBoundingClientRect();
    const { width, height } = element.getBoundingClientRect();
    const at = box.left + pointer.left;
    const right = at + AWAY;
    const left = right + width + EDGE <= innerWidth ? right : at - AWAY - width;
    element.style.left = `${Math.max(EDGE, Math.min(left, innerWidth - width - EDGE))}px`;
    element.style.top = `${Math.max(EDGE, Math.min(box.top + EDGE, innerHeight - height - EDGE))}px`;
  });
  const shown = pointer.nearest.slice(0, SHOWN_IN_TIP);
  if (!shown.length) return null;
  const at = shown[0]!.x;
  const x = kind === "time" ? formatTime(at) : kind === "duration" ? formatDuration(at) : formatNumber(at);
  return (
    <div class="tip" ref={tip}>
      <div class="tip-x">
        {kind === "number" && xLabel} {x}
      </div>
      {shown.map(({ line, y, place }, turn) => (
        <div class={`tip-row${turn === 0 ? " first" : ""}`} key={line.key}>
          <span class="swatch" style={{ background: line.colour }} />
          <span class="words">{line.label}</span>
          <span class="value">{formatNumber(y)}</span>
          {turn === 0 && line.low && line.high && line.low[place] !== line.high[place] && (
            <span class="faint">
              {formatNumber(line.low[place])}…{formatNumber(line.high[place])}
            </span>
          )}
        </div>
      ))}
      {pointer.nearest.length > shown.length && <div class="faint">and {pointer.nearest.length - shown.length} more</div>}
    </div>
  );
}
