// One stream of news for all windows of a browser, which opens six connections to a server. It runs in
// a worker that the windows share; they say what they show, and hear what happened to that. Where a
// proxy holds streams back, which is noticed by the silence, the hub asks again and again.

import type { News } from "../shapes";

export type Watched = Record<string, string>;
export type LiveState = "live" | "asking" | "cut";

/** What a part of a window shows, and up to which revision it has been told. */
export interface Watch {
  id: string;
  watched: Watched;
  revision: number;
}

export type FromWindow = { kind: "watch"; watch: Watch; url: string; headers: Record<string, string> } | { kind: "leave"; id: string };
export type ToWindow = { kind: "news"; id: string; news: News } | { kind: "state"; state: LiveState } | { kind: "logged out" };

interface Listener extends Watch {
  port: MessagePort;
}

// A stream says something every 15 s, if only a comment; the first event comes at once.
const FIRST_WORD = 4_000;
const BETWEEN_ASKING = 2_000;
// The silence may have been a busy server's: the stream is tried again, each time a while later.
const FIRST_RETRY = 15_000;
const LAST_RETRY = 600_000;
const LONGEST_PAUSE = 30_000;
// A stream that the server ends is asked for again, but not in a hurry.
const BETWEEN_STREAMS = 500;
// Windows that change their page together need one new stream.
const SETTLING = 60;

export class Hub {
  private readonly listeners = new Map<string, Listener>();
  private readonly ports = new Set<MessagePort>();
  private url = "";
  private headers: Record<string, string> = {};
  private state: LiveState = "live";
  private streamsWork: boolean | null = null;
  private retry = FIRST_RETRY;
  private retryAt = 0;
  private stream = new AbortController();
  private isRunning = false;
  private timer = 0;

  connect(port: MessagePort): void {
    this.ports.add(port);
    port.onmessage = ({ data }: MessageEvent<FromWindow>) => this.take(port, data);
  }

  private take(port: MessagePort, message: FromWindow): void {
    if (message.kind === "leave") {
      this.listeners.delete(message.id);
      // A stream that tells of one too many goes on.
      if (!this.listeners.size) this.stream.abort();
      return;
    }
    this.url = message.url;
    this.headers = message.headers;
    this.listeners.set(message.watch.id, { ...message.watch, port });
    port.postMessage({ kind: "state", state: this.state } satisfies ToWindow);
    clearTimeout(this.timer);
    this.timer = self.setTimeout(() => this.stream.abort(), SETTLING);
    if (!this.isRunning) void this.run();
  }

  /** While a window shows anything. */
  private async run(): Promise<void> {
    this.isRunning = true;
    let pause = BETWEEN_ASKING;
    await sleep(SETTLING);
    while (this.listeners.size) {
      try {
        if (this.streamsWork === false && Date.now() < this.retryAt) {
          await this.pollAll();
          await sleep(BETWEEN_ASKING);
        } else await this.readStream();
        pause = BETWEEN_ASKING;
      } catch {
        this.tell("cut");
        await sleep(pause);
        pause = Math.min(LONGEST_PAUSE, pause * 1.6);
      }
    }
    this.isRunning = false;
  }

  /** Until it ends, or windows show something else. */
  private async readStream(): Promise<void> {
    const stream = (this.stream = new AbortController());
    let isSilent = false;
    const silence = self.setTimeout(() => {
      isSilent = !this.streamsWork;
      if (isSilent) stream.abort();
    }, FIRST_WORD);
    try {
      const words = [...this.listeners.values()].map(({ id, watched, revision }) => ["watch", queryOf({ ...watched, id, since: revision })]);
      const response = await this.ask(new URLSearchParams(words), stream.signal, "text/event-stream");
      for await (const news of eventsOf(response)) {
        this.streamsWork = true;
        this.retry = FIRST_RETRY;
        this.tell("live");
        clearTimeout(silence);
        this.pass(news.watch!, news);
      }
      await sleep(BETWEEN_STREAMS);
    } catch (error) {
      if (isSilent) this.pollForNow();
      else if (!stream.signal.aborted) throw error;
    } finally {
      clearTimeout(silence);
    }
  }

  private pollForNow(): void {
    this.streamsWork = false;
    this.retryAt = Date.now() + this.retry;
    this.retry = Math.min(LAST_RETRY, this.retry * 2);
  }

  private async pollAll(): Promise<void> {
    for (const { id, watched, revision } of this.listeners.values()) {
      const response = await this.ask(queryOf({ ...watched, since: revision }), undefined, "application/json");
      this.tell("asking");
      this.pass(id, (await response.json()) as News);
    }
  }

  private async ask(query: URLSearchParams | string, signal: AbortSignal | undefined, accept: string): Promise<Response> {
    const response = await fetch(`${this.url}?${query}`, { headers: { ...this.headers, Accept: accept }, signal, credentials: "same-origin" });
    if (response.status === 401) this.tellAll({ kind: "logged out" });
    if (!response.ok) throw new Error(`the server answered ${response.status}`);
    return response;
  }

  private pass(id: string, news: News): void {
    const listener = this.listeners.get(id);
    if (!listener) return;
    listener.revision = news.revision;
    listener.port.postMessage({ kind: "news", id, news } satisfies ToWindow);
  }

  private tell(state: LiveState): void {
    if (state === this.state) return;
    this.state = state;
    this.tellAll({ kind: "state", state });
  }

  private tellAll(message: ToWindow): void {
    this.ports.forEach((port) => port.postMessage(message));
  }
}

function queryOf(words: Record<string, string | number>): string {
  return new URLSearchParams(Object.entries(words).map(([name, value]) => [name, String(value)])).toString();
}

async function* eventsOf(response: Response): AsyncGenerator<News> {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
    const events = (text + piece.value).split("\n\n");
    text = events.pop()!;
    for (const event of events) {
      // Between events there are comments, as a sign of life.
      const data = event.split("\n").find((line) => line.startsWith("data: "));
      if (data) yield JSON.parse(data.slice(6)) as News;
    }
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise((done) => self.setTimeout(done, ms));
}
