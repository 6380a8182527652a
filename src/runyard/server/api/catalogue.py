"""Every route of runyard's own API, in one table: from it `/api/openapi.json` is written.

Shapes are written `name: type, ...`; `name?` may be left out, `[type]` is a list of them. Where an
answer has many fields, those are named that a reader looks for first.
"""

from __future__ import annotations

from dataclasses import dataclass

BINARY, EVENTS, LINES = "application/octet-stream", "text/event-stream", "application/x-ndjson"
RUN = "key: int, id: text, name: text, entity: text, project: text, state: text, config: object, summary: object, tags: [text], steps: int"
SWEEP = "key: int, id: text, name: text, entity: text, project: text, method: text, state: text, counts: object, expected: int?, best: object?, eta_seconds: number?, agents: [object]"
TRIAL = "number: int, id: text, run: int?, name: text, state: text, cause: text?, values: object, value: number?, metrics: object, attempts: int"
JOB = "key: int, cluster: text, job_id: text, sweep: int?, kind: text, name: text, tasks: int, states: object, reason: text?, asked: object, used: object, failed: int"
REPORT = "id: text, title: text, notes: text, revision: int, created_at: number, updated_at: number, user: text"


@dataclass(frozen=True)
class Entry:
    """A route: what it does, what it is given, what it answers."""

    method: str
    path: str
    says: str
    query: str = ""
    body: str = ""
    answer: str = ""
    is_list: bool = False
    media: str = "application/json"


P = "/api/projects/{entity}/{project}"

# ruff: noqa: E501  (a row a route)
CATALOGUE: dict[str, tuple[Entry, ...]] = {
    "server": (
        Entry("GET", "/api/health", "How many runs the caller has; to the admin also version, process and database", answer="runs: int, running: int, version?: text, pid?: int, hostname?: text, started_at?: number, home?: text, database_bytes?: int, writer?: object, note?: text?"),
        Entry("GET", "/api/proof", "Proves, before a key is sent, that this server knows it: HMAC-SHA256, by the key's hash, of the nonce and the server's own address; `proof_here`: of its port and its machine", query="key: text, nonce: text", answer="proof: text, proof_here: text"),
        Entry("POST", "/api/server/stop", "End the server (its owner only); with keep_port=1 its port stays bound for the next one", query="keep_port: int", answer="stopping: bool"),
        Entry("POST", "/api/server/backup", "Copy the state folder to a path on the server's machine; a line of JSON a second tells how far it is, the last one the copy's size", body="path: text", media=LINES),
        Entry("GET", "/api/openapi.json", "This document", answer=""),
    ),
    "projects": (
        Entry("GET", "/api/projects", "Projects, the one with the latest activity first", answer="revision: int, projects: [object]"),
        Entry("GET", f"{P}/keys", "Under which names runs have config, summary, metrics and media", answer="revision: int, config: [object], summary: [object], metrics: [text], events: [text], media: [object]"),
        Entry("GET", f"{P}/runs", "Runs as columns, the newest first; with `since`, those that changed after that revision", query="config: [text], summary: [text], since: int", answer="revision: int, whole: bool, columns: object, config: object, summary: object, deleted: [int]"),
        Entry("POST", f"{P}/tags", "Add tags to runs, or take them off", body="runs: [int], add?: [text], remove?: [text]", answer="changed: int"),
        Entry("POST", f"{P}/groups", "Runs with the same values: `by` these fields, or by the config `except` these keys", body="runs?: [int], by?: [text], except?: [text]", answer="groups: [object]"),
        Entry("GET", f"{P}/reports", "Kept views, without their contents", answer=REPORT, is_list=True),
        Entry("POST", f"{P}/reports", "Keep a view", body="title: text, notes?: text, view?: object", answer=f"{REPORT}, view: object"),
    ),
    "live": (
        Entry("GET", "/api/live", "What changed after `since` in what is named; as server-sent events to who accepts them, at most one a second; else once, after up to `wait` seconds", query="project: [text], run: [int], sweep: [int], jobs: int, projects: int, since: int, wait: number", answer="revision: int, whole: bool, runs: [int], history: [int], console: [int], files: [int], deleted: [int], sweeps: [int], agents: bool, jobs: bool, projects: bool, reports: bool"),
        Entry("POST", "/api/curves", "Metrics of many runs, or the means of groups of runs, thinned out: 4 bytes length, a JSON head padded to 8, then little-endian columns at the offsets that the head names (x float64, the others float32)", body="project: text, metrics: [text], runs?: [int], groups?: [[int]], points?: int, x?: text, range?: [number], stream?: text", media=BINARY),
    ),
    "runs": (
        Entry("GET", "/api/run", "One run by what a person types: an id, its beginning, a name, PROJECT/NAME, ENTITY/PROJECT/ID", query="name: text", answer=f"{RUN}, attempts: [object], files: [text], alerts: [object], archives: [object], file_bytes: int"),
        Entry("GET", "/api/runs", "Runs, the newest first", query="project: text, state: text, limit: int", answer=RUN, is_list=True),
        Entry("POST", "/api/runs", "Announce a run before its program starts", body="id: text, project: text, command: [text], folder: text, host: text, name?: text, entity?: text, tags?: [text], notes?: text, group?: text", answer=RUN),
        Entry("PATCH", "/api/runs/{key}", "Change a name, notes, tags or a group", body="name?: text, notes?: text, tags?: [text], group?: text", answer=RUN),
        Entry("DELETE", "/api/runs/{key}", "Delete a run for good; with `artifacts=1` also what it logged", query="artifacts: int", answer="deleted: text"),
        Entry("POST", "/api/runs/{key}/stop", "Ask a run to stop", answer=RUN),
        Entry("GET", "/api/runs/{key}/archives", "What was overwritten or rewound", answer="number: int, reason: text, made_at: number, config: object, summary: object", is_list=True),
        Entry("GET", "/api/runs/{key}/metrics", "Every metric of a run, thinned out", query="points: int", answer="key: text, count: int, steps: [number], values: [number], last: any, minimum: number?, maximum: number?", is_list=True),
        Entry("GET", "/api/runs/{key}/rows", "What a run logged, row by row", query="stream: text, start: int, metric: [text], archive: int", media=LINES),
        Entry("GET", "/api/runs/{key}/console", "What it printed, from `after` on; waits up to `wait` seconds for more", query="after: int, wait: number", answer="text: text, next: int, ended: bool"),
        Entry("GET", "/api/runs/{key}/record", "A run as its client sent it", answer="id: text, config: text, summary: text, lines: object, files: [object]"),
        Entry("GET", "/api/runs/{key}/lines/{stream}", "Lines of a stream as they came", query="after: int", answer="start: int, lines: [text]"),
        Entry("POST", "/api/runs/{key}/attempts", "An execution begins", body="token: text, host: text, pid: int", answer="number: int"),
        Entry("POST", "/api/runs/{key}/attempts/{number}/console", "Console bytes from an offset on", query="offset: int", answer="stored: int, stop: bool"),
        Entry("POST", "/api/runs/{key}/attempts/{number}/end", "An execution has ended", body="exit_code: int, ended_at: number", answer=RUN),
        Entry("GET", "/api/runs/{key}/artifacts", "What a run logged and used", answer="logged: [object], used: [object]"),
        Entry("GET", "/api/artifacts/{key}", "A version of an artifact", answer="key: int"),
        Entry("GET", "/api/artifacts/{key}/manifest", "What it holds", answer="contents: object"),
    ),
    "sweeps": (
        Entry("GET", "/api/sweep", "One sweep by what a person types", query="name: text", answer=SWEEP),
        Entry("GET", "/api/sweeps", "Sweeps, the newest first", query="project: text, limit: int", answer=SWEEP, is_list=True),
        Entry("POST", "/api/sweeps", "Make a sweep of a file's text or data", body="config: any, project?: text, entity?: text, folder?: text, name?: text, prior_runs?: [text], seed?: int", answer=SWEEP),
        Entry("GET", "/api/sweeps/{key}", "A sweep with its counts, its best trial and its end", answer=SWEEP),
        Entry("DELETE", "/api/sweeps/{key}", "Delete a sweep that nobody has worked on", answer="deleted: text"),
        Entry("GET", "/api/sweeps/{key}/trials", "Its trials", query="state: text", answer=TRIAL, is_list=True),
        Entry("GET", "/api/sweeps/{key}/work", "Its agents, also those that left, and every attempt with what it used", answer="agents: [object], attempts: [object], causes: object"),
        Entry("GET", "/api/sweeps/{key}/columns", "A sweep for drawing: trials as columns, places in the space, front and convergence; with `since`, the trials that changed", query="since: int", answer="revision: int, whole: bool, sweep: object, parameters: [object], metrics: [object], limits: [object], trials: object, values: object, places: object, measured: object, front: [int], convergence: [object]"),
        Entry("GET", "/api/sweeps/{key}/importance", "How much each parameter matters for a metric", query="metric: text", answer="metric: text, trials: int, needed: int, explained: number?, parameters: [object]"),
        Entry("POST", "/api/sweeps/{key}/state", "running, paused, finished (what runs goes on) or canceled (it ends)", body="state: text", answer=SWEEP),
        Entry("POST", "/api/sweeps/{key}/cap", "How many trials there may be; null for no limit", body="run_cap: int?", answer=SWEEP),
        Entry("POST", "/api/sweeps/{key}/retry", "Run failed trials again: those named, or all", body="trials?: [int]", answer=SWEEP),
    ),
    "agents": (
        Entry("GET", "/api/agents", "Agents at work over all sweeps, and their machines; the last `gone` that left", query="gone: int", answer="revision: int, agents: [object], gone: [object], nodes: [object]"),
        Entry("POST", "/api/sweeps/{key}/agents", "An agent comes", body="token: text, host: text, pid: int, slots?: int, job?: text, node?: text", answer="agent: int, lease_seconds: number"),
        Entry("POST", "/api/agents/{agent}/claim", "Take the next trial; waits up to `wait` seconds for one. An agent whose job ends says what is left of it, and what there was", body="token: text, wait?: number, seconds_left?: number, seconds_whole?: number, has_begun?: bool", answer="do: text, why?: text, refusal?: text, trial?: object, attempt?: int, run?: object, args?: object, task?: object"),
        Entry("POST", "/api/agents/{agent}/renew", "These attempts are alive; which of them are to end, and of which has the client ended the run?", body="running: [object]", answer="stop: [object], over: [object], lease_seconds: number"),
        Entry("POST", "/api/agents/{agent}/rewind", "An attempt goes on from a checkpoint", body="trial: int, attempt: int, saved_at?: number, rows?: [text]", answer="owed_since: number?"),
        Entry("POST", "/api/agents/{agent}/ends", "An attempt has ended", body="trial: int, attempt: int, exit_code: int, ended_at: number, cause?: text, saved?: bool", answer="trial: object"),
        Entry("POST", "/api/agents/{agent}/leave", "An agent goes", body="why?: text"),
    ),
    "jobs": (
        Entry("GET", "/api/job", "One job by Slurm's number or its name", query="name: text", answer=f"{JOB}, agents: [object], script: text?, environment: object"),
        Entry("GET", "/api/jobs", "Slurm's jobs that runyard submitted, the newest first", query="sweep: int, open: int, limit: int", answer=JOB, is_list=True),
        Entry("POST", "/api/jobs", "Remember a job that was submitted", body="cluster?: text, job_id: text, kind: text, name?: text, sweep?: int, array?: text, tasks?: int, folder?: text, log_pattern?: text, asked?: object, script?: text, environment?: object, submitted_at?: number", answer=JOB),
        Entry("GET", "/api/jobs/{key}", "A job, the agents in it, its script and its environment", answer=f"{JOB}, agents: [object], script: text?, environment: object"),
        Entry("POST", "/api/jobs/{key}/log", "What its tasks printed after `after` (task → bytes), from its log files if the server sees them; waits up to `wait` seconds for more", body="after?: object, task?: text, whole?: bool, wait?: number", answer="tasks: [text], pieces: [object], after: object, more: bool, hidden: int, unread: text?, ended: bool"),
        Entry("POST", "/api/jobs/{key}/retry", "Trials that failed in it go back into the queue", answer="retried: int, sweep: text, agents: int"),
        Entry("POST", "/api/jobs/{key}/wish", "`cancel`: its agents begin nothing more, and the next command on the login node cancels it; null takes that back", body="wish: text?", answer="wish: text?"),
        Entry("POST", "/api/jobs/news", "What Slurm said of jobs", body="news: [object]", answer="changed: [int]"),
    ),
    "figures": (
        Entry("GET", "/api/figures", "What kinds of experiments of a project need, as measured; of one `kind`, also what its sweeps were expected to take, and took", query="project: text, entity: text, kind: text", answer="figures: [object], sweeps: [object]"),
        Entry("POST", "/api/figures", "Keep a measurement", body="project: text, kind: text, figures: object, hardware?: text, entity?: text", answer="key: int"),
        Entry("GET", "/api/sweeps/{key}/estimate", "What was expected of a sweep, and what its trials took", answer="kind: text, estimate: object?, truth: object?"),
        Entry("POST", "/api/sweeps/{key}/estimate", "Keep what is expected of a sweep", body="kind: text, estimate: object", answer="kind: text, estimate: object?, truth: object?"),
    ),
    "reports": (
        Entry("GET", "/api/reports/{id}", "A kept view with its notes", answer=f"{REPORT}, view: object"),
        Entry("PUT", "/api/reports/{id}", "Save it; with `revision`, only if nobody else has since (409)", body="title?: text, notes?: text, view?: object, revision?: int", answer=f"{REPORT}, view: object"),
        Entry("DELETE", "/api/reports/{id}", "Forget it", answer="deleted: text"),
    ),
    "people": (
        Entry("POST", "/api/login/codes", "Make a code that logs one browser in, once and soon", answer="code: text, seconds: int"),
        Entry("POST", "/api/login", "Exchange a code or a key for a session: its cookie, and the `proof` that goes into the header `X-Runyard`; `ticket` replaces that in the address of a file. `path` and `secure` are how the browser sees the page (open: no key)", body="code: text, path?: text, secure?: bool", answer="name: text, proof: text, ticket: text"),
        Entry("POST", "/api/login/confirm", "Show a code or a key again: for ten minutes the session may administer", body="code: text"),
        Entry("POST", "/api/logout", "End the session, and forget its cookie", body="path?: text"),
        Entry("GET", "/api/sessions", "Browsers that are logged in, the one used last first", answer="id: text, user: text, key: text, browser: text, created_at: number, used_at: number, used_from: text, ends_at: number, current: bool", is_list=True),
        Entry("DELETE", "/api/sessions", "End all sessions of the caller but the one that asks", answer="ended: int"),
        Entry("DELETE", "/api/sessions/{session}", "End a session", answer="ended: int"),
        Entry("GET", "/api/me", "Whose key this is", answer="name: text, admin: bool, teams: [text], invitations: [object]"),
        Entry("GET", "/api/users", "Users", answer="name: text", is_list=True),
        Entry("POST", "/api/users", "Add a user", body="name: text", answer="name: text, key: text"),
        Entry("DELETE", "/api/users/{user}", "Remove a user"),
        Entry("GET", "/api/keys", "Keys, without their secrets", answer="id: text, user: text, label: text, kind: text, scope: text, created_at: number, expires_at: number?, used_at: number?, used_from: text?", is_list=True),
        Entry("POST", "/api/keys", "Make a key", body="user?: text, label?: text, kind?: text, scope?: text, run?: int, days?: int", answer="key: text"),
        Entry("DELETE", "/api/users/{user}/keys", "Revoke all keys of a kind", query="kind: text", answer="revoked: int"),
        Entry("DELETE", "/api/users/{user}/keys/{key}", "Revoke a key"),
        Entry("GET", "/api/teams", "Teams", answer="name: text, members: [text], invited: [text]", is_list=True),
        Entry("POST", "/api/teams", "Make a team", body="name: text", answer="name: text"),
        Entry("DELETE", "/api/teams/{team}", "Give up a team"),
        Entry("PUT", "/api/teams/{team}/members/{user}", "Invite somebody; accept, for oneself; the admin takes them in at once"),
        Entry("DELETE", "/api/teams/{team}/members/{user}", "Let somebody go, or take an invitation back; leave or decline, for oneself"),
    ),
}  # fmt: skip
