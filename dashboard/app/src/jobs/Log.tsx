// What a job printed: the logs of all its tasks together, each line with its task. They lie in files,
// which the server may not see: then the command says it.

import { useEffect, useState } from "preact/hooks";
import { post } from "../api";
import { lastTurn } from "../components/ansi";
import { Copied } from "../components/Copied";
import { Dialog } from "../components/Dialog";
import { Lines } from "../components/Lines";
import { Link } from "../components/Link";
import { Loading } from "../components/States";
import { plural } from "../format";
import { pathOf } from "../root";
import { useQuery } from "../router";
import type { Job } from "./data";
import type { JobLog as Look } from "../shapes";

interface Printed {
  lines: string[];
  labels: string[];
  tasks: string[];
  hidden: number;
  unread: string | null;
  isCut: boolean;
  isLoading: boolean;
}

const NOTHING: Printed = { lines: [], labels: [], tasks: [], hidden: 0, unread: null, isCut: false, isLoading: true };
// More than anybody reads; the oldest go first.
const MOST_LINES = 300_000;

function useLog(job: Job, task: string, whole: boolean): Printed {
  const [printed, setPrinted] = useState(NOTHING);
  useEffect(() => {
    const stop = new AbortController();
    let after: Record<string, number> = {};
    let wait = 0;
    let pause = 500;
    const lines: string[] = [];
    const labels: string[] = [];
    let isCut = false;
    let tasks: string[] = [];
    const take = (look: Look) => {
      for (const piece of look.pieces) {
        isCut ||= piece.cut;
        const parts = piece.text.split("\n");
        if (parts.at(-1) === "") parts.pop();
        for (const part of parts) {
          lines.push(lastTurn(part));
          labels.push(piece.task);
        }
      }
      if (lines.length > MOST_LINES) {
        isCut = true;
        lines.splice(0, lines.length - MOST_LINES);
        labels.splice(0, labels.length - MOST_LINES);
      }
      if (!task) tasks = look.tasks;
      setPrinted((old) => ({ ...old, lines: [...lines], labels: [...labels], tasks: task ? old.tasks : tasks, hidden: look.hidden, unread: look.unread, isCut, isLoading: look.more }));
    };
    const follow = async () => {
      while (!stop.signal.aborted) {
        try {
          const look = await post<Look>(`api/jobs/${job.key}/log`, { after, wait, whole, ...(task && { task }) }, { signal: stop.signal });
          pause = 500;
          after = look.after;
          take(look);
          if (look.ended && !look.more) return;
          // The first answer comes at once; then the question waits, which gets through every proxy.
          wait = look.more ? 0 : 20;
        } catch {
          if (stop.signal.aborted) return;
          await new Promise((done) => setTimeout(done, pause));
          pause = Math.min(15_000, pause * 2);
        }
      }
    };
    setPrinted((old) => ({ ...NOTHING, tasks: old.tasks }));
    void follow();
    return () => stop.abort();
  }, [job.key, task, whole]);
  return printed;
}

export function Log({ job, close }: { job: Job; close: () => void }) {
  const [task, setTask] = useQuery("task");
  const [whole, setWhole] = useState(false);
  const printed = useLog(job, task, whole);
  const numbers = printed.tasks.flatMap((name) => (/_\d+$/.test(name) ? [name.split("_").at(-1)!] : []));
  const isEmpty = !printed.lines.length;
  return (
    <Dialog title={`Log of job ${job.job_id}`} close={close} large={!isEmpty}>
      {isEmpty && (printed.isLoading ? <Loading /> : <NoLog job={job} why={printed.unread} />)}
      {!isEmpty && (
        <Lines name="Log" lines={printed.lines} labels={printed.labels}>
          {printed.hidden > 0 && <span class="faint">of the {printed.tasks.length - printed.hidden} tasks that wrote last</span>}
          {printed.unread && <span class="faint">{printed.unread}</span>}
          {(numbers.length > 1 || task) && (
            <select aria-label="Which task" value={task} onChange={(event) => setTask(event.currentTarget.value)}>
              <option value="">{numbers.length ? `all ${plural(numbers.length, "task")}` : "all tasks"}</option>
              {(numbers.length ? numbers : [task]).map((number) => (
                <option key={number} value={number}>
                  task {number}
                </option>
              ))}
            </select>
          )}
          {printed.isCut && !whole && <button onClick={() => setWhole(true)}>Load what was before</button>}
        </Lines>
      )}
    </Dialog>
  );
}

function NoLog({ job, why }: { job: Job; why: string | null }) {
  const sweep = job.sweep_id && job.entity && job.project ? pathOf(job.entity, job.project, "sweeps", job.sweep_id) : null;
  return (
    <>
      <p>{why ?? "It has printed nothing yet: what it prints will appear here."}</p>
      <p>On the login node, this prints it:</p>
      <Copied text={`runyard logs ${job.job_id}`} />
      {sweep && (
        <p>
          What its programs printed is with their runs: see <Link to={sweep}>{job.sweep_name ?? "the sweep"}</Link>.
        </p>
      )}
    </>
  );
}
