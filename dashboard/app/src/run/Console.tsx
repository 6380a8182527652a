// What a run printed: live, searchable, in its colours. Only the lines in sight are in the document.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { get } from "../api";
import { Icon } from "../components/Icon";
import { Empty } from "../components/States";
import { plural } from "../format";
import { useQuery } from "../router";
import { lastTurn, pieces, plainText } from "./ansi";
import type { RunDetail } from "./detail";

interface Page {
  text: string;
  next: number;
  ended: boolean;
}

const LINE = 18;
const BEYOND = 20;
// Of a long console, this many bytes from the end; the rest is one click away.
const ENOUGH = 4 << 20;

/** The console's lines as they come; the last one may still grow. */
function useConsole(run: RunDetail): { lines: string[]; isWhole: boolean; isLoading: boolean; loadAll: () => void } {
  const size = run.attempts.reduce((sum, attempt) => sum + attempt.console_bytes, 0);
  const [from, setFrom] = useState(Math.max(0, size - ENOUGH));
  const [lines, setLines] = useState<string[]>([]);
  const [isLoading, setLoading] = useState(true);
  useEffect(() => {
    const stop = new AbortController();
    let after = from;
    let rest = "";
    let known: string[] = [];
    let pause = 500;
    const take = (text: string) => {
      const parts = (rest + text).split("\n");
      rest = parts.pop()!;
      for (const part of parts) known.push(lastTurn(part));
      setLines(rest ? [...known, lastTurn(rest)] : [...known]);
    };
    const follow = async () => {
      while (!stop.signal.aborted) {
        try {
          // A question that waits gets through every proxy.
          const page = await get<Page>(`api/runs/${run.key}/console`, { query: { after, wait: 20 }, signal: stop.signal });
          pause = 500;
          if (page.text) take(page.text);
          after = page.next;
          if (page.text.length < 1 << 19) setLoading(false);
          if (page.ended) return setLoading(false);
        } catch {
          if (stop.signal.aborted) return;
          await new Promise((done) => setTimeout(done, pause));
          pause = Math.min(15_000, pause * 2);
        }
      }
    };
    known = [];
    void follow();
    return () => stop.abort();
  }, [run.key, from]);
  return { lines, isWhole: from === 0, isLoading, loadAll: () => setFrom(0) };
}

export function Console({ run, fileUrl }: { run: RunDetail; fileUrl: (name: string) => string }) {
  const { lines, isWhole, isLoading, loadAll } = useConsole(run);
  const [words, setWords] = useQuery("find");
  const [isFollowing, setFollowing] = useState(true);
  const [place, setPlace] = useState(0);
  const box = useRef<HTMLDivElement>(null);
  const [span, setSpan] = useState({ first: 0, last: 80 });
  const hits = useMemo(() => {
    if (!words) return [];
    const wanted = words.toLowerCase();
    return lines.flatMap((line, number) => (plainText(line).toLowerCase().includes(wanted) ? [number] : []));
  }, [lines, words]);

  const look = () => {
    const element = box.current;
    if (!element) return;
    const first = Math.max(0, Math.floor(element.scrollTop / LINE) - BEYOND);
    const last = Math.ceil((element.scrollTop + element.clientHeight) / LINE) + BEYOND;
    setSpan((old) => (old.first === first && old.last === last ? old : { first, last }));
    setFollowing(element.scrollHeight - element.scrollTop - element.clientHeight < 2 * LINE);
  };
  useLayoutEffect(() => {
    const element = box.current;
    if (element && isFollowing && !words) element.scrollTop = element.scrollHeight;
    look();
  }, [lines.length]);
  const goTo = (turn: number) => {
    if (!hits.length) return;
    const next = (turn + hits.length) % hits.length;
    setPlace(next);
    box.current!.scrollTop = Math.max(0, hits[next]! * LINE - box.current!.clientHeight / 2);
  };
  useEffect(() => {
    if (hits.length) goTo(Math.min(place, hits.length - 1));
  }, [words]);

  if (!lines.length && !isLoading) {
    return <Empty what="Nothing was printed">wandb sends the console unless it is told not to; `runyard run` keeps it in any case.</Empty>;
  }
  const digits = String(lines.length).length;
  const hit = hits[place];
  return (
    <section class="console" aria-label="Console">
      <div class="tools">
        <div class="search">
          <Icon name="search" size={14} />
          <input
            type="search"
            placeholder="Search the output"
            aria-label="Search the output"
            value={words}
            onInput={(event) => setWords(event.currentTarget.value)}
            onKeyDown={(event) => event.key === "Enter" && goTo(place + (event.shiftKey ? -1 : 1))}
          />
        </div>
        {words && <span class="soft">{hits.length ? `${place + 1} of ${hits.length.toLocaleString("en")}` : "nothing found"}</span>}
        {words && hits.length > 1 && (
          <>
            <button class="quiet" aria-label="The one before" onClick={() => goTo(place - 1)}>
              ↑
            </button>
            <button class="quiet" aria-label="The next one" onClick={() => goTo(place + 1)}>
              ↓
            </button>
          </>
        )}
        <span class="faint right">{plural(lines.length, "line")}</span>
        {!isWhole && <button onClick={loadAll}>Load what was before</button>}
        {run.files.includes("output.log") && (
          <a href={fileUrl("output.log")} download>
            Download
          </a>
        )}
        {!isFollowing && (
          <button
            onClick={() => {
              setFollowing(true);
              box.current!.scrollTop = box.current!.scrollHeight;
            }}
          >
            To the end
          </button>
        )}
      </div>
      <div class="console-lines" ref={box} onScroll={look} tabIndex={0} role="log" aria-label="Output">
        <div style={{ height: `${lines.length * LINE + 8}px` }}>
          <pre style={{ transform: `translateY(${span.first * LINE}px)` }}>
            {lines.slice(span.first, span.last).map((line, turn) => {
              const number = span.first + turn;
              return (
                <div key={number} class={`console-line${number === hit ? " hit" : ""}`}>
                  <span class="line-number" style={{ width: `${digits + 1}ch` }}>
                    {number + 1}
                  </span>
                  <Line text={line} words={words} />
                </div>
              );
            })}
          </pre>
        </div>
      </div>
    </section>
  );
}

function Line({ text, words }: { text: string; words: string }) {
  return (
    <span>
      {pieces(text).map((piece) => (
        <span class={piece.look} style={piece.colour ? { color: piece.colour } : undefined}>
          {marked(piece.text, words)}
        </span>
      ))}
    </span>
  );
}

function marked(text: string, words: string) {
  if (!words) return text;
  const parts = [];
  const low = text.toLowerCase();
  const wanted = words.toLowerCase();
  let place = 0;
  for (let at = low.indexOf(wanted); at >= 0; at = low.indexOf(wanted, place)) {
    parts.push(text.slice(place, at), <mark>{text.slice(at, at + wanted.length)}</mark>);
    place = at + wanted.length;
  }
  return [...parts, text.slice(place)];
}
