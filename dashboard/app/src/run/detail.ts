// A run as the server tells it in full.

export interface Attempt {
  number: number;
  host: string;
  pid: number | null;
  started_at: number;
  ended_at: number | null;
  exit_code: number | null;
  cause: string | null;
  console_bytes: number;
  usage?: Record<string, number | string | null> | null;
  job: string | null;
  node: string | null;
}

export interface RunDetail {
  key: number;
  id: string;
  name: string;
  entity: string;
  project: string;
  state: string;
  exit_code: number | null;
  config: Record<string, unknown>;
  summary: Record<string, unknown>;
  tags: string[];
  notes: string | null;
  group: string | null;
  job_type: string | null;
  host: string | null;
  program: string | null;
  command: string[] | null;
  folder: string | null;
  created_at: number;
  started_at: number | null;
  ended_at: number | null;
  heartbeat_at: number | null;
  steps: number;
  stop_asked: boolean;
  attempts: Attempt[];
  files: string[];
  alerts: { title: string; text: string; level: string; raised_at: number }[];
  archives: { number: number; reason: string; made_at: number; steps: number }[];
  file_bytes: number;
  /** Where it is too: a program of a list may have named another project for its run. */
  sweep: { id: string; name: string; key: number; entity: string; project: string } | null;
  /** Of a trial that ran in one: Slurm's number, with its task. */
  job: string | null;
  job_key: number | null;
  node: string | null;
}

export interface Media {
  _type: string;
  path?: string;
  filenames?: string[];
  captions?: string[] | false;
  caption?: string;
  values?: number[];
  bins?: number[];
  [name: string]: unknown;
}

export function isMedia(value: unknown): value is Media {
  return typeof value === "object" && value !== null && typeof (value as Media)._type === "string";
}

/** Why an attempt ended, in words. */
export const CAUSES: Record<string, string> = {
  finished: "finished",
  "go-on": "asked to go on later",
  preempted: "made room for another job; goes on",
  time: "its job's time was up; goes on",
  node: "its node or agent was gone; goes on",
  cut: "was cut off after a checkpoint; goes on",
  memory: "ran out of memory",
  program: "the program failed",
  nan: "a watched value became NaN",
  signal: "ended by a signal",
  stopped: "was stopped",
  canceled: "was cancelled",
  cancelled: "was cancelled",
};
