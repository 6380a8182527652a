// How a job was submitted: in what environment, and its script as Slurm got it.

import { Copied } from "../components/Copied";
import type { JobDetail } from "./data";

const WORDS: Record<string, string> = {
  kind: "Environment",
  name: "Name",
  path: "Folder",
  image: "Image",
  mounts: "Mounted",
  modules: "Modules",
  variables: "Variables",
  before: "Lines before",
  profile: "Cluster's profile",
};

/** Rows of a list of facts. */
export function Environment({ job }: { job: JobDetail }) {
  const known = Object.entries(job.environment).filter(([name, value]) => name in WORDS && value !== null);
  return (
    <>
      {known.map(([name, value]) => (
        <>
          <dt>{WORDS[name]}</dt>
          <dd>{spoken(value)}</dd>
        </>
      ))}
    </>
  );
}

function spoken(value: unknown) {
  if (Array.isArray(value)) return value.map((item) => <code class="listed">{String(item)}</code>);
  if (typeof value === "object" && value !== null) {
    return Object.entries(value).map(([name, item]) => (
      <code class="listed">
        {name}={String(item)}
      </code>
    ));
  }
  return <code>{String(value)}</code>;
}

export function Script({ job }: { job: JobDetail }) {
  if (job.script) {
    return (
      <pre class="file-text script" tabIndex={0} aria-label="Script">
        {job.script}
      </pre>
    );
  }
  return (
    <>
      <p class="soft">{job.mine === false ? `The script is ${job.user}'s.` : "Its script was not recorded. Where its folder is still there, this prints it:"}</p>
      {job.mine !== false && <Copied text={`runyard status ${job.job_id} --script`} />}
    </>
  );
}
