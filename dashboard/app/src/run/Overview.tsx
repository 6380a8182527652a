// What a run is: facts, notes, attempts, config and summary.

import { useMemo, useState } from "preact/hooks";
import { patch } from "../api";
import { useFetch } from "../fetch";
import { Tag } from "../components/Badge";
import { Copied } from "../components/Copied";
import { Icon } from "../components/Icon";
import { Link } from "../components/Link";
import { attempt } from "../components/Toasts";
import { exactText, formatDuration, formatSize, formatTime, hasType, summaryName } from "../format";
import { flatten } from "../project/flat";
import { Markdown } from "../report/markdown";
import { pathOf } from "../root";
import { Attempts } from "./Attempts";
import type { RunDetail } from "./detail";
import { JobCard } from "./JobCard";

interface Metadata {
  os?: string;
  python?: string;
  gpu?: string;
  gpu_count?: number;
  cpu_count?: number;
  git?: { commit?: string; remote?: string };
  executable?: string;
  args?: string[];
  program?: string;
}

export function Overview({ run, fileUrl, changed }: { run: RunDetail; fileUrl: (name: string) => string; changed: () => void }) {
  return (
    <div class="overview">
      <div class="overview-side">
        <Facts run={run} fileUrl={fileUrl} />
        <Tags run={run} changed={changed} />
        <Notes run={run} changed={changed} />
        {run.alerts.length > 0 && (
          <section class="card block">
            <h2>Alerts</h2>
            {run.alerts.map((alert) => (
              <p>
                <strong>{alert.title}</strong> <span class="faint">{formatTime(alert.raised_at)}</span>
                <br />
                {alert.text}
              </p>
            ))}
          </section>
        )}
      </div>
      <div class="overview-main">
        <Attempts run={run} />
        <JobCard run={run} />
        <Values title="Config" values={run.config} empty="This run has no config: wandb.init(config={...}) gives it one." />
        <Values title="Summary" values={run.summary} nameOf={summaryName} empty="Nothing was logged yet." />
      </div>
    </div>
  );
}

function Facts({ run, fileUrl }: { run: RunDetail; fileUrl: (name: string) => string }) {
  const meta = useFetch<Metadata>(run.files.includes("wandb-metadata.json") ? fileUrl("wandb-metadata.json") : null).data;
  const end = run.ended_at ?? run.heartbeat_at;
  const facts: [string, preact.ComponentChildren][] = [
    ["Id", <code>{run.id}</code>],
    ["Started", formatTime(run.started_at ?? run.created_at)],
    ["Ended", run.ended_at ? formatTime(run.ended_at) : "–"],
    ["Runtime", end ? formatDuration(end - (run.started_at ?? run.created_at)) : "–"],
    ["Rows logged", run.steps.toLocaleString("en")],
    ["Host", run.host],
    ["Group", run.group],
    ["Job type", run.job_type],
    ["Sweep", run.sweep && <Link to={pathOf(run.sweep.entity, run.sweep.project, "sweeps", run.sweep.id)}>{run.sweep.name}</Link>],
    ["Exit code", run.exit_code],
    ["Folder", run.folder && <code>{run.folder}</code>],
    ["Program", (run.program ?? meta?.program) && <code>{run.program ?? meta?.program}</code>],
    ["Arguments", meta?.args?.length ? <code>{meta.args.join(" ")}</code> : null],
    ["Python", meta?.python],
    ["System", meta?.os],
    ["GPU", meta?.gpu && `${meta.gpu_count ?? 1} × ${meta.gpu}`],
    ["CPUs", meta?.cpu_count],
    ["Commit", meta?.git?.commit && <code>{meta.git.commit.slice(0, 12)}</code>],
    ["Files", run.files.length ? `${run.files.length} (${formatSize(run.file_bytes)})` : null],
  ];
  return (
    <section class="card block">
      <h2>Run</h2>
      <dl class="facts">
        {facts
          .filter(([, value]) => value !== null && value !== undefined && value !== "")
          .map(([name, value]) => (
            <>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </>
          ))}
      </dl>
      {run.command && <Copied text={run.command.join(" ")} />}
    </section>
  );
}

function Tags({ run, changed }: { run: RunDetail; changed: () => void }) {
  const save = (tags: string[]) => void attempt(patch(`api/runs/${run.key}`, { tags })).then(changed);
  return (
    <section class="card block">
      <h2>Tags</h2>
      <div class="row wrap">
        {run.tags.map((tag) => (
          <Tag text={tag} remove={() => save(run.tags.filter((other) => other !== tag))} />
        ))}
        <form
          onSubmit={(event) => {
            event.preventDefault();
            const field = event.currentTarget.elements.namedItem("tag") as HTMLInputElement;
            const tag = field.value.trim();
            if (tag && !run.tags.includes(tag)) save([...run.tags, tag]);
            field.value = "";
          }}
        >
          <input name="tag" class="tag-field" placeholder="Add a tag" aria-label="Add a tag" maxLength={64} />
        </form>
      </div>
    </section>
  );
}

function Notes({ run, changed }: { run: RunDetail; changed: () => void }) {
  const [text, setText] = useState<string | null>(null);
  const save = () =>
    void attempt(patch(`api/runs/${run.key}`, { notes: text || null }), "Saved").then((done) => {
      if (!done) return;
      setText(null);
      changed();
    });
  return (
    <section class="card block" aria-label="Notes">
      <div class="row">
        <h2>Notes</h2>
        {text === null && run.notes && (
          <button class="quiet right" aria-label="Edit the notes" onClick={() => setText(run.notes)}>
            <Icon name="edit" size={14} />
          </button>
        )}
      </div>
      {text === null && run.notes ? (
        <Markdown text={run.notes} />
      ) : (
        <textarea rows={5} placeholder="What was this run about? (Markdown)" aria-label="Notes" value={text ?? ""} onInput={(event) => setText(event.currentTarget.value)} />
      )}
      {text !== null && (
        <div class="row">
          <button class="primary" disabled={text === (run.notes ?? "")} onClick={save}>
            Save
          </button>
          <button onClick={() => setText(null)}>Leave it</button>
        </div>
      )}
    </section>
  );
}

interface ValuesProps {
  title: string;
  values: Record<string, unknown>;
  nameOf?: (name: string) => string;
  empty: string;
}

function Values({ title, values, nameOf = (name) => name, empty }: ValuesProps) {
  const [words, setWords] = useState("");
  const rows = useMemo(
    () =>
      Object.entries(flatten(values))
        .filter(([name, value]) => !name.startsWith("_") && !hasType(value))
        .map(([name, value]) => [nameOf(name), value] as const)
        .sort(([a], [b]) => a.localeCompare(b)),
    [values],
  );
  const wanted = words.toLowerCase();
  const shown = rows.filter(([name, value]) => `${name} ${exactText(value)}`.toLowerCase().includes(wanted));
  return (
    <section class="card block" aria-label={title}>
      <div class="row">
        <h2>
          {title} <span class="faint">{rows.length}</span>
        </h2>
        {rows.length > 8 && <input type="text" class="right" placeholder="Find" aria-label={`Find in ${title}`} value={words} onInput={(event) => setWords(event.currentTarget.value)} />}
      </div>
      {rows.length === 0 && <p class="faint">{empty}</p>}
      <table class="values">
        <tbody>
          {shown.map(([name, value]) => (
            <tr>
              <th scope="row">{name}</th>
              <td title={exactText(value)}>{exactText(value)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
