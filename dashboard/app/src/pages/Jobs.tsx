// Slurm's jobs that runyard submitted: what waits and why, who is at work where, what was used.

import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { get, post } from "../api";
import { useFetch } from "../fetch";
import { Copied } from "../components/Copied";
import { Dialog } from "../components/Dialog";
import { Link } from "../components/Link";
import { Loading, Trouble } from "../components/States";
import { attempt, say, sayWithUndo } from "../components/Toasts";
import { formatAgo, formatDuration, formatSize, formatTime, plural } from "../format";
import { useLive } from "../live";
import { pathOf } from "../root";
import { changeQuery, usePlace } from "../router";
import { Log } from "../jobs/Log";
import { askedWords, stateLook, stateWord, type Agent, type Job, type Node } from "../jobs/data";
import "../style/sweep.css";
import "../style/jobs.css";

interface Shown {
  revision: number;
  jobs: Job[];
  agents: Agent[];
  nodes: Node[];
}

const MOST = 300;

async function load(): Promise<Shown> {
  const working = await get<{ revision: number; agents: Agent[]; nodes: Node[] }>("api/agents");
  return { ...working, jobs: await get<Job[]>("api/jobs", { query: { limit: MOST } }) };
}

export default function Jobs() {
  const { data, error, again } = useFetch<Shown>("jobs", load);
  const { query } = usePlace();
  useLive({ jobs: "1" }, data?.revision ?? null, (news) => (news.whole || news.jobs || news.agents) && again());
  const open = useMemo(() => data?.jobs.filter((job) => job.ended_at === null) ?? [], [data]);
  const over = useMemo(() => data?.jobs.filter((job) => job.ended_at !== null) ?? [], [data]);
  if (error && !data) return <Trouble error={error} again={again} />;
  if (!data) return <Loading />;
  const shown = data.jobs.find((job) => String(job.key) === query.get("log"));
  return (
    <div class="sheet jobs">
      <div class="sheet-head">
        <h1>Jobs</h1>
        <LastAsked jobs={open} />
      </div>
      <section class="card" aria-label="Queue">
        <header class="card-head">
          <h2>In Slurm's queue</h2>
          <span class="faint">{open.length ? plural(open.length, "job") : ""}</span>
        </header>
        {open.length ? open.map((job) => <Queued key={job.key} job={job} again={again} />) : <NoQueue ever={data.jobs.length > 0} />}
      </section>
      <section class="card" aria-label="Agents at work">
        <header class="card-head">
          <h2>Agents at work</h2>
          <span class="faint">{data.agents.length ? `${plural(data.agents.length, "agent")} on ${plural(data.nodes.length, "machine")}` : ""}</span>
        </header>
        {data.agents.length ? <Working agents={data.agents} nodes={data.nodes} /> : <p class="card-body soft">None. An agent takes a sweep's trials and runs them, here (runyard sweep SWEEP) or in jobs (--on slurm).</p>}
      </section>
      <section class="card" aria-label="History">
        <header class="card-head">
          <h2>History</h2>
          <span class="faint">what was asked for, against what was used</span>
        </header>
        {over.length ? <History jobs={over} again={again} /> : <p class="card-body soft">Jobs that are over stand here, with how much of their time, memory, CPUs and GPUs they used: ask for less, wait less.</p>}
      </section>
      {shown && <Log job={shown} close={() => changeQuery({ log: null, task: null, find: null })} />}
    </div>
  );
}

/** Everything about the queue is as old as the last command that asked. */
function LastAsked({ jobs }: { jobs: Job[] }) {
  if (!jobs.length) return null;
  const polled = Math.max(...jobs.map((job) => job.polled_at ?? 0));
  const words = polled ? `Slurm was last asked ${formatAgo(polled)}.` : "Slurm has not been asked yet.";
  return (
    <span class="row wrap right soft asked">
      <span title="The server never asks Slurm itself: any runyard command on the login node does.">{words} On the login node, this asks now:</span>
      <Copied text="runyard status --jobs" />
    </span>
  );
}

function NoQueue({ ever }: { ever: boolean }) {
  return (
    <div class="card-body soft">
      <p>
        {ever
          ? "Nothing waits or runs in Slurm now."
          : "Nothing has been submitted to Slurm yet. Jobs appear here with why they wait, when they are to start, where they run, and how much of what they asked for they use."}
      </p>
      <Copied text="runyard submit -- python train.py" />
    </div>
  );
}

function States({ states, tasks }: { states: Record<string, number>; tasks: number }) {
  const known = Object.entries(states).filter(([, count]) => count > 0);
  if (!known.length) return <span class="badge">submitted{tasks > 1 ? ` (${tasks} tasks)` : ""}</span>;
  return (
    <>
      {known.map(([state, count]) => (
        <span key={state} class={`badge state-${stateLook(state)}`}>
          <span class="dot" />
          {tasks > 1 ? `${count} ` : ""}
          {stateWord(state)}
        </span>
      ))}
    </>
  );
}

function JobName({ job }: { job: Job }) {
  const to = job.sweep_id && job.entity && job.project ? pathOf(job.entity, job.project, "sweeps", job.sweep_id) : null;
  return (
    <span class="job-name">
      {to ? <Link to={to}>{job.name}</Link> : <b>{job.name}</b>}{" "}
      <span class="mono faint">
        {job.job_id}
        {job.array ? `_[${job.array}]` : ""}
      </span>
      {job.kind !== "agents" && <span class="tag">{job.kind}</span>}
      {job.mine === false && <span class="faint">{job.user}</span>}
    </span>
  );
}

function Queued({ job, again }: { job: Job; again: () => void }) {
  const [asks, setAsks] = useState(false);
  const wish = async (what: string | null) => {
    const done = await attempt(post(`api/jobs/${job.key}/wish`, { wish: what }));
    again();
    if (done && what) sayWithUndo(`Job ${job.job_id} is to be cancelled.`, () => void wish(null));
  };
  const waits = (job.states.PENDING ?? 0) > 0 || !job.polled_at;
  const left = job.started_at && job.asked.time ? job.started_at + job.asked.time - Date.now() / 1000 : null;
  return (
    <article class="queued" aria-label={`Job ${job.job_id}`}>
      <div class="queued-head">
        <JobName job={job} />
        <States states={job.states} tasks={job.tasks} />
        <span class="row right">
          <LogButton job={job} />
          <Retry job={job} again={again} />
          {job.mine !== false &&
            (job.wish === "cancel" ? (
              <button onClick={() => void wish(null)}>Don't cancel</button>
            ) : (
              <button class="dangerous" onClick={() => setAsks(true)}>
                Cancel
              </button>
            ))}
        </span>
      </div>
      {job.reason && waits && <p class="reason">{job.reason}</p>}
      <div class="project-facts wrap">
        <span>{askedWords(job.asked)}</span>
        {job.asked.time ? <span>at most {formatDuration(job.asked.time)}</span> : null}
        {waits && job.starts_at && <span title={formatTime(job.starts_at)}>Slurm's guess: starts {inWords(job.starts_at)}</span>}
        {left !== null && (job.states.RUNNING ?? 0) > 0 && <span>{left > 0 ? `${formatDuration(left)} left of the first task's time` : "its time is up"}</span>}
        <span>submitted {formatAgo(job.submitted_at)}</span>
        {job.cluster && <span>{job.cluster}</span>}
      </div>
      {job.wish === "cancel" && (
        <div class="wish">
          <p>It is to be cancelled. Agents in it begin nothing more; Slurm hears of it from the next runyard command on the login node, or at once with:</p>
          <Copied text={`runyard cancel ${job.job_id}`} />
        </div>
      )}
      {asks && (
        <Dialog title={`Cancel job ${job.job_id}?`} close={() => setAsks(false)}>
          <p>
            Trials that run in it are handed back and wait for another agent; from their last checkpoint, if they have one. The server cannot speak to Slurm itself: agents of the job begin nothing more, and the next runyard command on the login node takes the job out of the queue.
          </p>
          <div class="row dialog-end">
            <button onClick={() => setAsks(false)}>Leave it</button>
            <button
              class="dangerous"
              onClick={() => {
                setAsks(false);
                void wish("cancel");
              }}
            >
              Cancel the job
            </button>
          </div>
        </Dialog>
      )}
    </article>
  );
}

function inWords(then: number): string {
  const left = then - Date.now() / 1000;
  return left <= 0 ? "any moment" : `in ${formatDuration(left)}`;
}

function Working({ agents, nodes }: { agents: Agent[]; nodes: Node[] }) {
  return (
    <ul class="nodes">
      {nodes.map((node) => {
        const here = agents.filter((agent) => (agent.node ?? agent.host) === node.name);
        return (
          <li key={node.name} class="node">
            <div class="node-head">
              <b>{node.name}</b>
              <span class="soft">
                {node.running} of {plural(node.slots, "slot")} busy
              </span>
              {node.jobs.length > 0 && <span class="mono faint">{node.jobs.join(", ")}</span>}
            </div>
            {here.map((agent) => (
              <div key={agent.key} class="agent">
                <Link to={pathOf(agent.entity, agent.project, "sweeps", agent.sweep_id)}>{agent.sweep_name}</Link>
                <Slots agent={agent} />
                <span class="faint agent-heard">heard {formatAgo(agent.heard_at)}</span>
                {agent.packing && <span class="soft agent-packing">{agent.packing}</span>}
              </div>
            ))}
          </li>
        );
      })}
    </ul>
  );
}

const MOST_SLOTS = 16;

function Slots({ agent }: { agent: Agent }) {
  const free = Math.max(0, agent.slots - agent.running.length);
  return (
    <ul class="slots" aria-label={`${agent.running.length} of ${agent.slots} slots busy`}>
      {agent.running.slice(0, MOST_SLOTS).map((trial) => (
        <li key={trial.number} class="slot busy">
          <Link to={pathOf(agent.entity, agent.project, "runs", trial.id)} title={trial.name}>
            {trial.name}
          </Link>
          <span class="faint">{trial.began_at ? formatDuration(Date.now() / 1000 - trial.began_at) : ""}</span>
          {trial.usage?.gpu_use !== undefined && <Share label="GPU" share={trial.usage.gpu_use} />}
          {trial.usage?.vram_peak ? <span class="faint">{formatSize(trial.usage.vram_peak)} VRAM</span> : null}
          {trial.usage?.memory_peak ? <span class="faint">{formatSize(trial.usage.memory_peak)}</span> : null}
        </li>
      ))}
      {agent.running.length > MOST_SLOTS && <li class="slot">and {agent.running.length - MOST_SLOTS} more</li>}
      {free > 0 && <li class="slot free">{plural(free, "slot")} free</li>}
    </ul>
  );
}

/** How much of something is used: below a third it is a waste, near all of it a risk. */
function Share({ label, share, words, risk }: { label: string; share: number; words?: ComponentChildren; risk?: boolean }) {
  const look = risk && share > 0.9 ? "much" : share < 0.33 ? "little" : "";
  return (
    <span class={`share ${look}`} title={`${label}: ${Math.round(share * 100)} % used`}>
      <span class="share-label">{label}</span>
      <span class="share-bar">
        <span style={{ width: `${Math.min(100, share * 100)}%` }} />
      </span>
      <span class="share-number">{words ?? `${Math.round(share * 100)} %`}</span>
    </span>
  );
}

function LogButton({ job }: { job: Job }) {
  return (
    <button class="quiet" onClick={() => changeQuery({ log: String(job.key), task: null, find: null })}>
      Log
    </button>
  );
}

interface Retried {
  retried: number;
  sweep: string;
  agents: number;
}

/** Its failed trials go back into the queue. Who takes them is another matter: the server submits nothing. */
function Retry({ job, again }: { job: Job; again: () => void }) {
  const [done, setDone] = useState<Retried | null>(null);
  const retry = async () => {
    const answer = await attempt(post<Retried>(`api/jobs/${job.key}/retry`));
    again();
    if (!answer) return;
    if (answer.agents) say(`${plural(answer.retried, "trial")} run again, from the last checkpoint if there is one.`);
    else setDone(answer);
  };
  return (
    <>
      {job.failed > 0 && (
        <button onClick={() => void retry()} title="From their last checkpoint, if they have one">
          Retry {job.failed} failed
        </button>
      )}
      {done && (
        <Dialog title={`${plural(done.retried, "trial")} wait again`} close={() => setDone(null)}>
          <p>Nobody works on the sweep now, and the server cannot submit jobs itself. On the login node, this submits one:</p>
          <Copied text={`runyard agents add ${done.sweep} --on slurm`} />
        </Dialog>
      )}
    </>
  );
}

function History({ jobs, again }: { jobs: Job[]; again: () => void }) {
  return (
    <div class="history">
      {jobs.map((job) => (
        <article key={job.key} class="past" aria-label={`Job ${job.job_id}`}>
          <div class="queued-head">
            <JobName job={job} />
            <States states={job.states} tasks={job.tasks} />
            <span class="row right">
              <span class="faint">{formatAgo(job.ended_at)}</span>
              <LogButton job={job} />
              <Retry job={job} again={again} />
            </span>
          </div>
          <div class="project-facts wrap">
            <span>{askedWords(job.asked)}</span>
            <Efficiency job={job} />
          </div>
        </article>
      ))}
    </div>
  );
}

function Efficiency({ job }: { job: Job }) {
  const { used, asked: request } = job;
  const limit = used.limit_seconds ?? request.time;
  const memory = used.memory_asked ?? (request.memory ? request.memory * 1024 * 1024 : null);
  const shares: [string, number, string, boolean][] = [];
  if (used.longest_seconds != null && limit) shares.push(["time", used.longest_seconds / limit, `${formatDuration(used.longest_seconds)} of ${formatDuration(limit)}`, true]);
  if (used.memory_peak != null && memory) shares.push(["memory", used.memory_peak / memory, `${formatSize(used.memory_peak)} of ${formatSize(memory)}`, true]);
  if (used.cpu_seconds != null && used.cpu_seconds_held) shares.push(["CPU", used.cpu_seconds / used.cpu_seconds_held, "", false]);
  if (used.gpu_use != null) shares.push(["GPU", used.gpu_use, "", false]);
  if (!shares.length) return <span class="faint">{job.started_at ? "how much it used is not known here: `runyard status --jobs` asks Slurm's accounting" : "it never began"}</span>;
  return (
    <>
      {shares.map(([label, share, words, risk]) => (
        <Share key={label} label={label} share={share} words={words || undefined} risk={risk} />
      ))}
    </>
  );
}
