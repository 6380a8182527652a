// Slurm's jobs and runyard's agents, as the server knows them. The server never asks Slurm: commands
// on the login node do, and tell it.

export interface Asked {
  gpus?: number | null;
  gpu_type?: string | null;
  cpus?: number | null;
  /** MiB. */
  memory?: number | null;
  /** Seconds. */
  time?: number | null;
  nodes?: number | null;
  partition?: string | null;
  account?: string | null;
}

export interface Used {
  /** Seconds, of the longest task. */
  longest_seconds?: number;
  limit_seconds?: number;
  /** Bytes. */
  memory_peak?: number;
  memory_asked?: number;
  cpu_seconds?: number;
  cpu_seconds_held?: number;
  gpu_seconds_held?: number;
  /** 0 to 1. */
  gpu_use?: number;
}

export interface Job {
  key: number;
  cluster: string;
  job_id: string;
  user: string;
  mine?: boolean;
  sweep: number | null;
  sweep_id: string | null;
  sweep_name: string | null;
  entity: string | null;
  project: string | null;
  kind: string;
  name: string;
  array: string | null;
  tasks: number;
  folder: string;
  log_pattern: string | null;
  asked: Asked;
  submitted_at: number;
  polled_at: number | null;
  states: Record<string, number>;
  reason: string | null;
  starts_at: number | null;
  started_at: number | null;
  ended_at: number | null;
  used: Used;
  /** What the page asked to be done to it, and nobody has carried out yet. */
  wish: string | null;
  snapshot: string | null;
  /** How many of its trials failed. */
  failed: number;
}

/** A job as it is told alone. */
export interface JobDetail extends Job {
  /** As it was submitted; null where it was not recorded, or is somebody else's. */
  script: string | null;
  environment: Record<string, unknown>;
}

export interface Usage {
  memory_peak?: number;
  cpu_seconds?: number;
  vram_peak?: number;
  gpu_use?: number;
  gpu?: string | number;
  steps_per_second?: number;
}

export interface AgentTrial {
  number: number;
  id: string;
  name: string;
  run: number | null;
  attempt: number;
  began_at: number | null;
  usage: Usage | null;
}

export interface Agent {
  key: number;
  kind: string;
  host: string;
  node: string | null;
  job: string | null;
  slots: number;
  created_at: number;
  heard_at: number;
  sweep: number;
  sweep_id: string;
  sweep_name: string;
  sweep_state: string;
  entity: string;
  project: string;
  running: AgentTrial[];
}

export interface Node {
  name: string;
  agents: number;
  slots: number;
  running: number;
  jobs: string[];
}

const MEMORY_UNIT = 1024;

/** What each task asked for, in one line. */
export function askedWords(asked: Asked): string {
  const words: string[] = [];
  if (asked.gpus) words.push(`${asked.gpus} GPU${asked.gpus > 1 ? "s" : ""}${asked.gpu_type ? ` ${asked.gpu_type}` : ""}`);
  if (asked.cpus) words.push(`${asked.cpus} CPU${asked.cpus > 1 ? "s" : ""}`);
  if (asked.memory) words.push(`${Math.round((asked.memory / MEMORY_UNIT) * 10) / 10} GiB`);
  if (asked.nodes && asked.nodes > 1) words.push(`${asked.nodes} nodes`);
  if (asked.partition) words.push(asked.partition);
  return words.join(", ") || "the site's defaults";
}

/** Slurm's words for states, in the colours that runs have. */
export function stateLook(state: string): string {
  const known: Record<string, string> = { RUNNING: "running", PENDING: "waiting", COMPLETED: "finished", TIMEOUT: "stopped", CANCELLED: "canceled", PREEMPTED: "stopped", UNKNOWN: "unknown" };
  return known[state] ?? (/FAIL|MEMORY|BOOT|DEADLINE/.test(state) ? "failed" : "waiting");
}

export function stateWord(state: string): string {
  return state.toLowerCase().replaceAll("_", " ");
}
