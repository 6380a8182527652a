// A frame with a viewer in it (Vega, Plotly, point clouds, molecules). The frame has no origin: whatever
// a program wrote into its chart, it cannot reach the page. The viewer's side is viewers/frame.ts.

import { useEffect, useRef, useState } from "preact/hooks";
import { colourOf } from "../colours";
import { useObserved } from "../observe";
import { useSeen } from "../project/MetricChart";
import { address } from "../root";
import { theme, type Theme } from "../theme";
import type { Look, Message } from "../viewers/frame";

declare const VIEWER_FILES: Record<ViewerName, string>;
export type ViewerName = "vega" | "plotly" | "solid" | "molecule";

const COLOURS = 10;

export function Viewer({ viewer, content, title }: { viewer: ViewerName; content: unknown; title: string }) {
  const box = useRef<HTMLDivElement>(null);
  const frame = useRef<HTMLIFrameElement>(null);
  const colours = useObserved(theme);
  const isSeen = useSeen(box);
  const [isReady, setReady] = useState(false);
  const [state, setState] = useState<"waiting" | "drawn" | { failed: string }>("waiting");
  useEffect(() => {
    const hear = (event: MessageEvent<Message>) => {
      if (!frame.current || event.source !== frame.current.contentWindow) return;
      if ("ready" in event.data) setReady(true);
      else setState("drawn" in event.data ? "drawn" : { failed: String(event.data.failed).slice(0, 500) });
    };
    addEventListener("message", hear);
    return () => removeEventListener("message", hear);
  }, []);
  useEffect(() => {
    // The frame has no origin that could be named here; frames of this page are viewers alone (frame-src).
    if (isReady) frame.current?.contentWindow?.postMessage({ content, look: lookOf(colours) }, "*");
  }, [isReady, content, colours]);
  return (
    <div ref={box} class="viewer" data-state={typeof state === "string" ? state : "failed"}>
      {isSeen && <iframe ref={frame} sandbox="allow-scripts" src={address(`assets/${VIEWER_FILES[viewer]}`)} title={title} />}
      {isSeen && state === "waiting" && <span class="spinner" role="status" aria-label="Loading" />}
      {typeof state === "object" && <p role="alert">This cannot be drawn: {state.failed}</p>}
    </div>
  );
}

function lookOf(colours: Theme): Look {
  const style = getComputedStyle(document.documentElement);
  const named = (name: string) => style.getPropertyValue(name).trim();
  return {
    isDark: colours === "dark",
    text: named("--text"),
    soft: named("--soft"),
    line: named("--line"),
    accent: named("--accent"),
    // Vega reads the older way to write a colour only.
    colours: Array.from({ length: COLOURS }, (_, place) => colourOf(place, colours).replaceAll(" ", ",")),
  };
}
