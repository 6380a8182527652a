// The job in which a run ran: where, with what, in which environment, by which script.

import { useState } from "preact/hooks";
import { useFetch } from "../fetch";
import { Icon } from "../components/Icon";
import { Link } from "../components/Link";
import { askedWords, type JobDetail } from "../jobs/data";
import { Environment, Script } from "../jobs/Script";
import { withQuery } from "../api";
import type { RunDetail } from "./detail";

export function JobCard({ run }: { run: RunDetail }) {
  const { data: job } = useFetch<JobDetail>(run.job_key ? `api/jobs/${run.job_key}` : null);
  const [isOpen, setOpen] = useState(false);
  if (!run.job) return null;
  const task = /_(\d+)$/.exec(run.job)?.[1];
  return (
    <section class="card block" aria-label="Job">
      <div class="row wrap">
        <h2>
          Job <span class="mono">{run.job}</span>
          {run.node && <span class="faint"> on {run.node}</span>}
        </h2>
        {job && (
          <span class="right row">
            <Link to={withQuery("jobs", { log: job.key, task })}>Log</Link>
            <Link to="jobs">All jobs</Link>
          </span>
        )}
      </div>
      {job && (
        <>
          <dl class="facts">
            <dt>Asked for</dt>
            <dd>{askedWords(job.asked)}</dd>
            {job.cluster && (
              <>
                <dt>Cluster</dt>
                <dd>{job.cluster}</dd>
              </>
            )}
            {job.snapshot && (
              <>
                <dt>Copy of the code</dt>
                <dd>
                  <code>{job.snapshot.slice(0, 16)}</code>
                </dd>
              </>
            )}
            <Environment job={job} />
          </dl>
          <button class="section-head" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            <Icon name={isOpen ? "down" : "right"} size={14} /> Script
          </button>
          {isOpen && <Script job={job} />}
        </>
      )}
    </section>
  );
}
