// News from the server as they come: by an event stream where the way there lets one through, else
// by asking. Proxies that hold a stream back are noticed by its silence.

import { useEffect, useRef } from "preact/hooks";
import { get, withQuery } from "./api";
import { Observed } from "./observe";
import { address } from "./root";

export interface News {
  revision: number;
  whole: boolean;
  runs: number[];
  history: number[];
  console: number[];
  deleted: number[];
  sweeps: number[];
  agents: boolean;
  jobs: boolean;
  projects: boolean;
  reports: boolean;
}

export type Watched = Record<string, string>;
export type LiveState = "live" | "asking" | "cut";
export const liveState = new Observed<LiveState>("live");

// A stream says something every 15 s, if only a comment; the first event comes at once.
const FIRST_WORD = 4_000;
const BETWEEN_ASKING = 2_000;
const LONGEST_PAUSE = 30_000;
let streamsWork: boolean | null = null;

/** Listen to what happens to these; returns how to stop. Hidden pages are not told. */
export function listen(watched: Watched, since: number, hear: (news: News) => void): () => void {
  let revision = since;
  let over = false;
  let source: EventSource | null = null;
  let timer = 0;
  let pause = BETWEEN_ASKING;

  const take = (news: News): void => {
    liveState.set(source ? "live" : "asking");
    pause = BETWEEN_ASKING;
    revision = news.revision;
    hear(news);
  };

  const openStream = (): void => {
    source = new EventSource(address(withQuery("api/live", { ...watched, since: revision })));
    timer = window.setTimeout(() => {
      if (streamsWork) return;
      closeStream();
      streamsWork = false;
      void poll();
    }, FIRST_WORD);
    source.onopen = () => liveState.set("live");
    source.onmessage = (event) => {
      streamsWork = true;
      clearTimeout(timer);
      take(JSON.parse(event.data as string) as News);
    };
    source.onerror = () => {
      // EventSource would try again for ever, without telling why.
      closeStream();
      if (!streamsWork) streamsWork = false;
      void poll();
    };
  };

  const closeStream = (): void => {
    clearTimeout(timer);
    source?.close();
    source = null;
  };

  const poll = async (): Promise<void> => {
    if (over || document.hidden) return;
    try {
      take(await get<News>("api/live", { query: { ...watched, since: revision } }));
      if (streamsWork && !over) return openStream();
    } catch {
      liveState.set("cut");
      pause = Math.min(LONGEST_PAUSE, pause * 1.6);
    }
    if (!over) timer = window.setTimeout(() => void poll(), pause);
  };

  const start = (): void => {
    if (streamsWork === false) void poll();
    else openStream();
  };

  const onVisible = (): void => {
    closeStream();
    if (!document.hidden && !over) start();
  };

  document.addEventListener("visibilitychange", onVisible);
  if (!document.hidden) start();
  return () => {
    over = true;
    closeStream();
    document.removeEventListener("visibilitychange", onVisible);
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
