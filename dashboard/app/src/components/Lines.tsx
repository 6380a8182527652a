// Printed lines: searchable, in their colours, following their end. Only those in sight are in the document.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { plural } from "../format";
import { useQuery } from "../router";
import "../style/lines.css";
import { pieces, plainText } from "./ansi";
import { Icon } from "./Icon";

const LINE = 18;
const BEYOND = 20;

interface Props {
  /** What it is, for who cannot see it. */
  name: string;
  lines: readonly string[];
  /** Where each line comes from. */
  labels?: readonly string[];
  /** At the right of the tools. */
  children?: ComponentChildren;
}

export function Lines({ name, lines, labels, children }: Props) {
  const [words, setWords] = useQuery("find");
  const [isFollowing, setFollowing] = useState(true);
  const [place, setPlace] = useState(0);
  const box = useRef<HTMLDivElement>(null);
  const [span, setSpan] = useState({ first: 0, last: 80 });
  const hits = useMemo(() => {
    if (!words) return [];
    const wanted = words.toLowerCase();
    return lines.flatMap((line, number) => (plainText(line).toLowerCase().includes(wanted) || labels?.[number]?.includes(wanted) ? [number] : []));
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

  const digits = String(lines.length).length;
  const wide = labels ? Math.min(24, labels.reduce((most, label) => Math.max(most, label.length), 0)) : 0;
  const hit = hits[place];
  return (
    <section class="console" aria-label={name}>
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
        {children}
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
                  {labels ? (
                    <span class="line-label" style={{ width: `${wide + 1}ch` }}>
                      {labels[number]}
                    </span>
                  ) : (
                    <span class="line-number" style={{ width: `${digits + 1}ch` }}>
                      {number + 1}
                    </span>
                  )}
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
