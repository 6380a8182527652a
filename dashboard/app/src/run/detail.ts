// A run as the server tells it in full.

export type { Attempt, RunDetail } from "../shapes";

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
