// News from the server as they come, by the stream that all windows share.

import { useEffect, useRef } from "preact/hooks";
import { loggedOut } from "./api";
import { Hub, type FromWindow, type LiveState, type ToWindow, type Watch, type Watched } from "./live/hub";
import { Observed } from "./observe";
import { address } from "./root";
import { sessionHeaders } from "./session";
import type { News } from "./shapes";

export type { LiveState, News };
export const liveState = new Observed<LiveState>("live");

interface OwnWatch extends Watch {
  hear: (news: News) => void;
}

const own = new Map<string, OwnWatch>();
let port: MessagePort | null = null;

function connect(): MessagePort {
  if (typeof SharedWorker === "function") {
    return new SharedWorker(new URL("./live/worker.ts", import.meta.url), { type: "module", name: "runyard live" }).port;
  }
  // Some phones have no shared workers, and few windows.
  const channel = new MessageChannel();
  new Hub().connect(channel.port1);
  return channel.port2;
}

function send(message: FromWindow): void {
  if (!port) {
    port = connect();
    port.onmessage = ({ data }: MessageEvent<ToWindow>) => {
      if (data.kind === "state") return liveState.set(data.state);
      if (data.kind === "logged out") return loggedOut.forEach((listener) => listener());
      const watch = own.get(data.id);
      if (!watch) return;
      watch.revision = data.news.revision;
      watch.hear(data.news);
    };
  }
  port.postMessage(message);
}

function announce({ id, watched, revision }: Watch): void {
  send({ kind: "watch", watch: { id, watched, revision }, url: address("api/live"), headers: sessionHeaders() });
}

function leaveAll(): void {
  own.forEach(({ id }) => send({ kind: "leave", id }));
}

// Hidden windows are not told; seen again, they hear what they missed.
document.addEventListener("visibilitychange", () => (document.hidden ? leaveAll() : own.forEach(announce)));
addEventListener("pagehide", leaveAll);
addEventListener("pageshow", (event) => event.persisted && own.forEach(announce));

/** Listen to what happens to these; returns how to stop. */
export function listen(watched: Watched, since: number, hear: (news: News) => void): () => void {
  const watch: OwnWatch = { id: `${Date.now()}-${Math.random()}`, watched, revision: since, hear };
  own.set(watch.id, watch);
  if (!document.hidden) announce(watch);
  return () => {
    own.delete(watch.id);
    send({ kind: "leave", id: watch.id });
  };
}

/** As `listen`, for as long as the component is shown and `since` is known. */
export function useLive(watched: Watched | null, since: number | null, hear: (news: News) => void): void {
  const latest = useRef(hear);
  latest.current = hear;
  const name = watched && JSON.stringify(watched);
  const known = since !== null;
  useEffect(() => {
    if (!watched || since === null) return;
    return listen(watched, since, (news) => latest.current(news));
    // `since` is where to begin; later ones come with the news themselves.
  }, [name, known]);
}
