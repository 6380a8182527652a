// The attempts of a run on a time line: where each ran, why it was cut, how it went on.

import { formatDuration, formatSize, formatTime, plural } from "../format";
import { CAUSES, type Attempt, type RunDetail } from "./detail";

export function Attempts({ run }: { run: RunDetail }) {
  const { attempts } = run;
  if (!attempts.length) return null;
  const begin = attempts[0]!.started_at;
  const end = Math.max(...attempts.map((attempt) => attempt.ended_at ?? Date.now() / 1000), begin + 1);
  const place = (time: number) => ((time - begin) / (end - begin)) * 100;
  const worked = attempts.reduce((sum, attempt) => sum + ((attempt.ended_at ?? Date.now() / 1000) - attempt.started_at), 0);
  return (
    <section class="card block" aria-label="Attempts">
      <h2>
        {plural(attempts.length, "attempt")} <span class="faint">{formatDuration(worked)} at work, {formatDuration(end - begin)} in all</span>
      </h2>
      <div class="timeline" aria-hidden="true">
        {attempts.map((attempt) => {
          const left = place(attempt.started_at);
          const width = Math.max(0.6, place(attempt.ended_at ?? end) - left);
          return <span class={`span ${toneOf(attempt)}`} style={{ left: `${left}%`, width: `${width}%` }} title={`${attempt.number}: ${wordsOf(attempt)}`} />;
        })}
      </div>
      <div class="timeline-ends faint">
        <span>{formatTime(begin)}</span>
        <span>{attempts.at(-1)!.ended_at ? formatTime(end) : "now"}</span>
      </div>
      <ol class="attempts">
        {attempts.map((attempt) => (
          <li>
            <span class={`attempt-number ${toneOf(attempt)}`}>{attempt.number}</span>
            <span>{wordsOf(attempt)}</span>
            <span class="faint">
              on {attempt.node ?? attempt.host}
              {attempt.job ? `, job ${attempt.job}` : ""}, {formatDuration((attempt.ended_at ?? Date.now() / 1000) - attempt.started_at)}
            </span>
            <Usage attempt={attempt} />
            <span class="faint right">{formatTime(attempt.started_at)}</span>
          </li>
        ))}
      </ol>
    </section>
  );
}

function toneOf(attempt: Attempt): string {
  if (attempt.ended_at === null) return "tone-busy";
  if (attempt.exit_code === 0) return "tone-good";
  const isCut = ["go-on", "preempted", "time", "node", "cut", "stopped", "canceled", "cancelled"].includes(attempt.cause ?? "");
  return isCut || attempt.exit_code === 75 ? "tone-warn" : "tone-bad";
}

function wordsOf(attempt: Attempt): string {
  if (attempt.ended_at === null) return "at work";
  if (attempt.cause) {
    const words = CAUSES[attempt.cause] ?? attempt.cause;
    return attempt.exit_code && attempt.cause === "program" ? `${words}, exit code ${attempt.exit_code}` : words;
  }
  if (attempt.exit_code === 0) return "finished";
  if (attempt.exit_code !== null && attempt.exit_code < 0) return `ended by signal ${-attempt.exit_code}`;
  return attempt.exit_code === null ? "ended" : `failed with exit code ${attempt.exit_code}`;
}

function Usage({ attempt }: { attempt: Attempt }) {
  const { usage } = attempt;
  if (!usage) return null;
  const words = [
    typeof usage.memory_peak === "number" && `${formatSize(usage.memory_peak)} memory`,
    typeof usage.vram_peak === "number" && `${formatSize(usage.vram_peak)} on the GPU`,
    typeof usage.gpu_use === "number" && `GPU ${Math.round(usage.gpu_use * 100)} %`,
    typeof usage.steps_per_second === "number" && `${usage.steps_per_second.toPrecision(3)} steps/s`,
  ].filter(Boolean);
  return words.length ? <span class="faint">{words.join(", ")}</span> : null;
}
