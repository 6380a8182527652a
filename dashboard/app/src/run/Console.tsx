// What a run printed, as it comes.

import { useEffect, useState } from "preact/hooks";
import { get } from "../api";
import { lastTurn } from "../components/ansi";
import { Lines } from "../components/Lines";
import { Empty } from "../components/States";
import type { RunDetail } from "./detail";
import type { Console as Page } from "../shapes";

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
  if (!lines.length && !isLoading) {
    return <Empty what="Nothing was printed">wandb sends the console unless it is told not to; `runyard run` keeps it in any case.</Empty>;
  }
  return (
    <Lines name="Console" lines={lines}>
      {!isWhole && <button onClick={loadAll}>Load what was before</button>}
      {run.files.includes("output.log") && (
        <a href={fileUrl("output.log")} download>
          Download
        </a>
      )}
    </Lines>
  );
}
