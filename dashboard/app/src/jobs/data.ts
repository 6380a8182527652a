// Slurm's jobs and runyard's agents, as the server knows them. The server never asks Slurm: commands
// on the login node do, and tell it.

export type { Agent, AgentTrial, Job, JobDetail, Node } from "../shapes";

export interface JobRequest {
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

export interface Usage {
  memory_peak?: number;
  cpu_seconds?: number;
  vram_peak?: number;
  gpu_use?: number;
  gpu?: string | number;
  steps_per_second?: number;
}

const MEMORY_UNIT = 1024;

/** What each task asked for, in one line. */
export function askedWords(request: JobRequest): string {
  const words: string[] = [];
  if (request.gpus) words.push(`${request.gpus} GPU${request.gpus > 1 ? "s" : ""}${request.gpu_type ? ` ${request.gpu_type}` : ""}`);
  if (request.cpus) words.push(`${request.cpus} CPU${request.cpus > 1 ? "s" : ""}`);
  if (request.memory) words.push(`${Math.round((request.memory / MEMORY_UNIT) * 10) / 10} GiB`);
  if (request.nodes && request.nodes > 1) words.push(`${request.nodes} nodes`);
  if (request.partition) words.push(request.partition);
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
