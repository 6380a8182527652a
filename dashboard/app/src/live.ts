// News from the server as they come: by an event stream where the way there lets one through, else
// by asking. Proxies that hold a stream back are noticed by its silence. The stream is fetched: the
// browser's EventSource cannot send the header that our sessions need.

import { useEffect, useRef } from "preact/hooks";
import { ask, get } from "./api";
import { Observed } from "./observe";
import type { News } from "./shapes";

export type { News };

export type Watched = Record<string, string>;
export type LiveState = "live" | "asking" | "cut";
export const liveState = new Observed<LiveState>("live");

// A stream says something every 15 s, if only a comment; the first event comes at once.
const FIRST_WORD = 4_000;
const BETWEEN_ASKING = 2_000;
const LONGEST_PAUSE = 30_000;
let streamsWork: boolean | null = null;

/** Hear the events of a stream until it ends. */
async function readEvents(query: Watched, signal: AbortSignal, hear: (news: News) => void): Promise<void> {
  const response = await ask("GET", "api/live", undefined, { query, signal, accept: "text/event-stream" });
  liveState.set("live");
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
    const events = (text + piece.value).split("\n\n");
    text = events.pop()!;
    for (const event of events) {
      // Between events there are comments, as a sign of life.
      const data = event.split("\n").find((line) => line.startsWith("data: "));
      if (data) hear(JSON.parse(data.slice(6)) as News);
    }
  }
}

/** Listen to what happens to these; returns how to stop. Hidden pages are not told. */
export function listen(watched: Watched, since: number, hear: (news: News) => void): () => void {
  let revision = since;
  let over = false;
  let stream: AbortController | null = null;
  let timer = 0;
  let pause = BETWEEN_ASKING;

  const take = (news: News): void => {
    liveState.set(stream ? "live" : "asking");
    pause = BETWEEN_ASKING;
    revision = news.revision;
    hear(news);
  };

  const openStream = (): void => {
    const opened = new AbortController();
    stream = opened;
    const giveUp = (): void => {
      if (stream !== opened) return;
      closeStream();
      if (!streamsWork) streamsWork = false;
      void poll();
    };
    timer = window.setTimeout(() => !streamsWork && giveUp(), FIRST_WORD);
    const hearEvent = (news: News): void => {
      if (stream !== opened) return;
      streamsWork = true;
      clearTimeout(timer);
      take(news);
    };
    readEvents({ ...watched, since: String(revision) }, opened.signal, hearEvent).then(giveUp, giveUp);
  };

  const closeStream = (): void => {
    clearTimeout(timer);
    stream?.abort();
    stream = null;
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
