// What the server answers, in one file. Written by scripts/page_types.py from src/runyard/shapes.

export interface Agent {
  key: number;
  kind: string;
  host: string;
  slots: number;
  packing: string | null;
  job: string | null;
  node: string | null;
  created_at: number;
  heard_at: number;
  pid: number | null;
  left_at: number | null;
  why: string | null;
  sweep: number;
  sweep_id: string;
  sweep_name: string;
  sweep_state: string;
  entity: string;
  project: string;
  running: AgentTrial[];
}

/** A trial that an agent has at work. */
export interface AgentTrial {
  number: number;
  id: string;
  name: string;
  run: number | null;
  attempt: number;
  began_at: number | null;
  usage: Record<string, any> | null;
}

/** What a program wanted somebody to know. */
export interface Alert {
  title: string;
  text: string;
  level: string;
  raised_at: number;
}

export interface Archive {
  number: number;
  reason: string;
  made_at: number;
  steps: number;
}

/** A version; `metadata` is a text of JSON, `made_by` the id of a run. */
export interface ArtifactRecord {
  key: number;
  entity: string;
  project: string;
  collection: string;
  type: string;
  digest: string;
  version: number;
  description: string | null;
  metadata: string | null;
  history_step: number | null;
  ttl: number | null;
  size: number;
  tags: string[];
  aliases: string[];
  made_by: string | null;
  used_by: Place[];
}

/** One execution of a run that runyard itself started. */
export interface Attempt {
  number: number;
  host: string;
  started_at: number;
  ended_at: number | null;
  exit_code: number | null;
  cause: string | null;
  usage: Record<string, any> | null;
  pid: number | null;
  console_bytes: number;
  job: string | null;
  node: string | null;
}

/** Keys and names of the runs that were changed at once. */
export interface ChangedRuns {
  runs: number[];
  names: string[];
}

export interface Console {
  text: string;
  next: number;
  ended: boolean;
}

/** What runs said of a metric by `define_metric`. */
export interface DefinedMetric {
  step: string | null;
  goal: string | null;
  summary: string[];
  hidden: boolean;
}

/** A key of configs or summaries; `varies` between the runs. */
export interface FieldName {
  name: string;
  kind: string;
  varies: boolean;
}

export interface FieldNames {
  revision: number;
  config: FieldName[];
  summary: FieldName[];
  metrics: string[];
  defined: Record<string, DefinedMetric>;
  ranked: Record<string, string>;
  events: string[];
  media: MediaName[];
}

/** How much each parameter matters; `explained` is null where too few trials tell. */
export interface Importance {
  metric: string;
  trials: number;
  needed: number;
  explained: number | null;
  parameters: Weight[];
}

/** Joining the team accepts it; see `PeopleApi.add_member`. */
export interface Invitation {
  team: string;
  invited_by: string;
  created_at: number;
}

/** One job as the server tells it; an array is one job with many tasks. `states` counts tasks by state (`schedulers/slurm/states.py`); `starts_at` is Slurm's guess for those that wait. `polled_at` says how old all of it is; null: nobody has asked Slurm yet. `failed`: of its trials, how many. */
export interface Job {
  key: number;
  cluster: string;
  job_id: string;
  user: string;
  mine: boolean;
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
  asked: Record<string, any>;
  snapshot: string | null;
  submitted_at: number;
  polled_at: number | null;
  states: Record<string, number>;
  reason: string | null;
  starts_at: number | null;
  started_at: number | null;
  ended_at: number | null;
  used: Record<string, any>;
  wish: string | null;
  failed: number;
}

/** An agent that is or was in the job; `job` names its task: 123_4. */
export interface JobAgent {
  key: number;
  job: string;
  node: string | null;
  host: string;
  pid: number | null;
  slots: number;
  packing: string | null;
  running: number;
  created_at: number;
  heard_at: number;
  left_at: number | null;
  why: string | null;
}

/** `script` as it was submitted, to its owner alone; null where it was not recorded. */
export interface JobDetail {
  key: number;
  cluster: string;
  job_id: string;
  user: string;
  mine: boolean;
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
  asked: Record<string, any>;
  snapshot: string | null;
  submitted_at: number;
  polled_at: number | null;
  states: Record<string, number>;
  reason: string | null;
  starts_at: number | null;
  started_at: number | null;
  ended_at: number | null;
  used: Record<string, any>;
  wish: string | null;
  failed: number;
  agents: JobAgent[];
  script: string | null;
  environment: Record<string, any>;
}

/** `after`: what to send the next time; `unread`: why there is nothing. */
export interface JobLog {
  tasks: string[];
  pieces: LogPiece[];
  after: Record<string, number>;
  more: boolean;
  hidden: number;
  unread: string | null;
  ended: boolean;
}

/** A key without the key: that is told once, when it is made. `starts`: the first characters of the key, if it is not older than their column. */
export interface Key {
  id: string;
  starts: string | null;
  user: string;
  label: string;
  kind: string;
  scope: string;
  created_at: number;
  expires_at: number | null;
  used_at: number | null;
  used_from: string | null;
}

export interface Limit {
  name: string;
  bound: number;
  above: boolean;
}

/** What one task printed; `cut`: what was before it is left out, or is gone. */
export interface LogPiece {
  task: string;
  text: string;
  cut: boolean;
}

/** Whose key this is. */
export interface Me {
  name: string;
  admin: boolean;
  teams: string[];
  invitations: Invitation[];
}

export interface MediaName {
  name: string;
  type: string;
}

export interface Metric {
  name: string;
  goal: "minimize" | "maximize";
  target: number | null;
}

/** Keys of what changed after a revision; `whole`: ask for everything anew. `watch`: for which of those that share a stream. */
export interface News {
  revision: number;
  whole: boolean;
  runs: number[];
  history: number[];
  console: number[];
  files: number[];
  deleted: number[];
  sweeps: number[];
  agents: boolean;
  jobs: boolean;
  projects: boolean;
  reports: boolean;
  watch?: string;
}

export interface Node {
  name: string;
  agents: number;
  slots: number;
  running: number;
  jobs: string[];
}

/** How a parameter is drawn; `categories` is 0 for a number. */
export interface Parameter {
  name: string;
  categories: number;
  said: string;
  searched: boolean;
  ticks: Tick[];
}

/** A run or a sweep, and where it is. */
export interface Place {
  key: number;
  id: string;
  name: string;
  entity: string;
  project: string;
}

export interface Report {
  id: string;
  title: string;
  notes: string;
  entity: string;
  project: string;
  user: string;
  revision: number;
  created_at: number;
  updated_at: number;
  view: Record<string, any>;
}

export interface ReportHead {
  id: string;
  title: string;
  notes: string;
  entity: string;
  project: string;
  user: string;
  revision: number;
  created_at: number;
  updated_at: number;
}

/** Where `whole` is false, only the runs that changed. `total`: with those of other slices. `best`: by metric, the best value that a trial has logged, which its sweep ranks by. */
export interface RunColumns {
  revision: number;
  whole: boolean;
  total: number;
  columns: Record<string, any[]>;
  config: Record<string, any[]>;
  summary: Record<string, any[]>;
  best: Record<string, any[]>;
  deleted: number[];
}

/** `job` and `node`, of a trial: of the agent that had it last; `job_key` where we know it. */
export interface RunDetail {
  key: number;
  id: string;
  name: string;
  entity: string;
  project: string;
  state: string;
  exit_code: number | null;
  config: Record<string, any>;
  summary: Record<string, any>;
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
  metrics: string[];
  attempts: Attempt[];
  files: string[];
  alerts: Alert[];
  archives: Archive[];
  file_bytes: number;
  trial: TrialPlace | null;
  sweep: Place | null;
  job: string | null;
  job_key: number | null;
  node: string | null;
}

export interface RunFile {
  name: string;
  size: number;
}

/** A browser that is logged in to the page. */
export interface Session {
  id: string;
  user: string;
  key: string;
  browser: string;
  created_at: number;
  used_at: number;
  used_from: string;
  ends_at: number;
  current: boolean;
}

export interface Step {
  order: number;
  number: number;
  value: number;
  at: number;
}

/** One sweep as the server tells it. `expected` is null where it has no end of its own; `chance` is that a new setting beats the best by a hundredth, as the search's model sees it: a number if it is so low that the sweep may be stopped, else null. */
export interface Sweep {
  key: number;
  id: string;
  name: string;
  entity: string;
  project: string;
  description: string | null;
  method: string;
  state: string;
  cause: string | null;
  config: Record<string, any>;
  run_cap: number | null;
  budget: SweepBudget | null;
  chance: number | null;
  expected: number | null;
  counts: Record<string, number>;
  trials: number;
  attempts: number;
  agents: SweepAgent[];
  metric: string | null;
  goal: string | null;
  best: Trial | null;
  eta_seconds: number | null;
  seed: number;
  folder: string | null;
  created_at: number;
  started_at: number | null;
  ended_at: number | null;
}

/** `over_since`: since when a program of its runs on although its run has ended. */
export interface SweepAgent {
  key: number;
  kind: string;
  host: string;
  slots: number;
  packing: string | null;
  job: string | null;
  node: string | null;
  created_at: number;
  heard_at: number;
  pid: number | null;
  running: number;
  usage: Record<string, any> | null;
  over_since: number | null;
}

/** In hours of `unit`: gpu-hours, or hours of trials; `planned`: with what open trials take. */
export interface SweepBudget {
  limit: number;
  unit: string;
  used: number;
  planned: number;
}

/** Where `whole` is false, only the trials that changed. `last`: what summaries say now. */
export interface SweepColumns {
  metrics: Metric[];
  parameters: Parameter[];
  trials: Record<string, any[]>;
  values: Record<string, any[]>;
  places: Record<string, (number | null)[]>;
  measured: Record<string, any[]>;
  front: number[];
  convergence: Step[];
  revision: number;
  whole: boolean;
  sweep: Sweep;
  text: string;
  limits: Limit[];
  last: Record<string, any[]>;
}

export interface Tick {
  place: number;
  value: any;
}

/** `gone_at`: when it is deleted for good. */
export interface TrashedRun {
  key: number;
  id: string;
  name: string;
  entity: string;
  project: string;
  state: string;
  deleted_at: number;
  deleted_by: string;
  gone_at: number;
}

/** One setting of a sweep. `value` is the first metric, `values` are the settings. */
export interface Trial {
  number: number;
  id: string;
  run: number | null;
  name: string;
  state: string;
  cause: string | null;
  values: Record<string, any>;
  value: number | null;
  metrics: Record<string, number>;
  attempts: number;
  agent: number | null;
  host: string | null;
  node: string | null;
  job: string | null;
  usage: Record<string, any> | null;
  began_at: number | null;
  created_at: number;
  started_at: number | null;
  ended_at: number | null;
  seconds: number;
  seconds_left: number | null;
  exit_code: number | null;
}

/** Which trial a run is: its sweep's key, and its number there; `values` are its settings. */
export interface TrialPlace {
  sweep: number;
  number: number;
  values: Record<string, any>;
}

/** How much one parameter matters; `best`: where on its axis the best trials are. */
export interface Weight {
  name: string;
  share: number;
  is_sure: boolean;
  best: "lowest" | "between" | "highest" | null;
}
