"""Agents: who takes trials, tells of them, and leaves."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from sqlite3 import Connection
from types import MappingProxyType

from runyard.server.history.history import HISTORY, count_rows
from runyard.server.processes import attempts, clients
from runyard.server.runs import runs
from runyard.server.store.sql import Row, fetch_one, insert
from runyard.server.sweeps.ledger import endings, leases, programs, settling, sweeps, trials
from runyard.server.sweeps.policy import lifecycle

# Between a stop that a client hears of by its stream, and one that its agent enforces.
STOP_GRACE = 60.0
KINDS = ("own", "stock", "function")
# W&B's agents beat every five seconds: one inside a program from the start, the others five later.
_FIRST_POLL = 3.0
# With its next beat, an agent would tell of a run that it was given: unless that died before. A
# beat that comes sooner or later than this was not answered the last time, and is repeated.
_NEXT_POLL = (4.0, 12.0)
# Among a trial's tries: it was handed out, and nobody ever heard of it.
_UNHEARD = "unheard"


class NoAgent(LookupError):
    """There is no such agent, or it has left."""


@dataclass(frozen=True)
class Stop:
    """An attempt that is to end: stopped, canceled, paused; lost, if it is somebody else's now."""

    trial: int
    attempt: int
    run_id: str
    why: str


@dataclass(frozen=True)
class NewAgent:
    """An agent that comes. `kind`: own; W&B's are stock, or function inside a program.

    `job` and `node`: where it is on a cluster, in the scheduler's words.
    """

    user: int
    kind: str
    host: str
    token: str | None = None
    pid: int | None = None
    slots: int = 1
    job: str | None = None
    node: str | None = None


def begin(db: Connection, sweep: int, new: NewAgent, now: float) -> Row:
    """An agent comes. With a token, a repeated call finds the same agent."""
    question = "SELECT key FROM agents WHERE sweep = ? AND token = ?"
    known = fetch_one(db, question, (sweep, new.token))
    if known is not None:
        db.execute("UPDATE agents SET heard_at = ? WHERE key = ?", (now, known["key"]))
        key = known["key"]
    else:
        times = {"created_at": now, "heard_at": now}
        key = insert(db, "agents", {"sweep": sweep, **vars(new), **times})
    row = by_key(db, key)
    assert row is not None
    return row


def by_key(db: Connection, key: int) -> Row | None:
    """An agent, with the entity whose sweep it works for."""
    return fetch_one(
        db,
        "SELECT agents.*, projects.entity AS entity, sweeps.state AS sweep_state FROM agents "
        "JOIN sweeps ON sweeps.key = agents.sweep JOIN projects ON projects.key = sweeps.project "
        "WHERE agents.key = ?",
        (key,),
    )


def of_sweep(db: Connection, sweep: int) -> list[Row]:
    return db.execute("SELECT * FROM agents WHERE sweep = ? ORDER BY key", (sweep,)).fetchall()


def is_heard(agent: Row, now: float) -> bool:
    is_recent: bool = agent["heard_at"] > now - leases.LEASE_SECONDS
    return agent["left_at"] is None and is_recent


def runs_of(db: Connection, sweep: int, agent: int) -> list[Row]:
    """The runs that an agent was the last to work on, in the order of their trials."""
    rows = db.execute(
        "SELECT run FROM trials WHERE sweep = ? AND agent = ? AND run IS NOT NULL ORDER BY number",
        (sweep, agent),
    )
    return runs.by_keys(db, [row["run"] for row in rows])


@dataclass(frozen=True)
class Over:
    """An attempt whose client has said that the run is over, and with which exit code."""

    trial: int
    attempt: int
    exit_code: int


@dataclass(frozen=True)
class Renewed:
    """What an agent hears, and until when it would hear the same if nothing changes."""

    stops: Sequence[Stop]
    quiet_until: float
    over: Sequence[Over] = ()
    """Attempts whose program runs on, although its client has ended the run."""


def renew(
    db: Connection,
    agent: int,
    running: Sequence[tuple[int, int]],
    now: float,
    *,
    slots: int | None = None,
    packing: str | None = None,
    usage: Mapping[tuple[int, int], str] = MappingProxyType({}),
) -> Renewed:
    """An agent says which trials it has, each with its attempt. What of them is to end.

    One that was given up as lost meanwhile is the agent's again, unless somebody else has it.
    `slots`, `packing` and `usage` are news: what it has room for, how many programs share a GPU
    and why, and what its attempts have used.
    """
    row = _hear(db, agent, now)
    if slots is not None and slots != row["slots"]:
        db.execute("UPDATE agents SET slots = ? WHERE key = ?", (slots, agent))
    if packing is not None and packing != row["packing"]:
        db.execute("UPDATE agents SET packing = ? WHERE key = ?", (packing, agent))
    stops = []
    over = []
    quiet_until = now + leases.LEASE_SECONDS * (1 - leases.FRESH)
    for number, attempt in running:
        trial = trials.by_number(db, row["sweep"], number)
        if trial is not None and trial["attempt"] == attempt and trial["agent"] == agent:
            trial = settling.take_back(db, trial, now)
        is_held = (
            trial is not None
            and trial["state"] == "running"
            and (trial["agent"], trial["attempt"]) == (agent, attempt)
        )
        if trial is None or not is_held:
            stops.append(Stop(number, attempt, "" if trial is None else trial["id"], "lost"))
            continue
        until = leases.extend(db, trial, now)
        quiet_until = min(quiet_until, until - leases.LEASE_SECONDS * leases.FRESH)
        if trial["stop"] is not None:
            quiet_until = now  # It may have to be told before anything else changes.
        if (number, attempt) in usage and trial["run"] is not None:
            attempts.set_usage(db, trial["run"], attempt, usage[number, attempt])
        if is_to_be_told(db, trial, now):
            stops.append(Stop(number, attempt, trial["id"], trial["stop"]))
        client = clients.newest_after(db, trial["run"], trial["clients"])
        if client is not None and client["ended_at"] is not None:
            over.append(Over(number, attempt, client["exit_code"] or 0))
    return Renewed(stops, quiet_until, over)


def is_to_be_told(db: Connection, trial: Row, now: float) -> bool:
    """Whether the agent itself has to end a trial that was asked to stop.

    A client hears it with its next message and loses nothing; its agent waits for that. Cancelled
    is at once, and so is what has no client to hear it.
    """
    if trial["stop"] is None:
        return False
    # One that was asked in the future was asked while the clock was ahead.
    if trial["stop"] == "canceled" or not 0 <= now - trial["stop_at"] < STOP_GRACE:
        return True
    run = runs.by_key(db, trial["run"])
    return run is None or not run["seen_client"]


def end_attempt(
    db: Connection,
    agent: int,
    number: int,
    attempt: int,
    *,
    exit_code: int,
    cause: str | None,
    ended_at: float,
    now: float,
    saved: bool = False,
    usage: str | None = None,
) -> Row:
    """An agent of ours tells how an attempt ended. Told again, or too late, it changes nothing."""
    row = _hear(db, agent, now)
    trial = trials.by_number(db, row["sweep"], number)
    if trial is None:
        raise NoAgent(f"the sweep has no trial {number}")
    if trial["run"] is not None:
        if usage is not None:
            attempts.set_usage(db, trial["run"], attempt, usage)
        endings.end_attempt(
            db,
            trial["run"],
            attempt,
            exit_code=exit_code,
            ended_at=ended_at,
            cause=cause,
            now=now,
            saved=saved,
        )
    ended = trials.get(db, row["sweep"], number)
    if trial["state"] == "running" and trial["attempt"] == attempt and ended["state"] != "running":
        seconds = max(0.0, ended_at - (trial["began_at"] or ended_at))
        programs.learn(db, trial, ended, exit_code=exit_code, seconds=seconds, saved=saved)
    return ended


def run_to_rewind(
    db: Connection, agent: int, number: int, attempt: int, saved_at: float | None, now: float
) -> int | None:
    """The run of an attempt that is about to go on from the checkpoint of that time, if the agent
    still has the trial."""
    row = _hear(db, agent, now)
    run = run_at_work(db, agent, number, attempt)
    if run is not None:
        trials.update(db, trials.get(db, row["sweep"], number), rewound_to=saved_at or 0.0)
    return run


def run_at_work(db: Connection, agent: int, number: int, attempt: int) -> int | None:
    row = by_key(db, agent)
    trial = None if row is None else trials.by_number(db, row["sweep"], number)
    if trial is None or (trial["agent"], trial["attempt"]) != (agent, attempt):
        return None
    run: int | None = trial["run"]
    return run if trial["state"] == "running" else None


def note_kept(db: Connection, agent: int, number: int, attempt: int) -> None:
    """The run of an attempt that goes on ends at its checkpoint now.

    If that is further than before, the last attempt made progress, though an earlier one may have
    logged more rows behind a checkpoint that was not as far.
    """
    run = run_at_work(db, agent, number, attempt)
    if run is None:
        return
    trial, kept = trials.by_run(db, run), count_rows(db, run, HISTORY)
    if trial is not None and kept > trial["kept"]:
        tries = lifecycle.forgive(trial["cause"], json.loads(trial["tries"]))
        trials.update(db, trial, kept=kept, tries=json.dumps(tries))


def leave(db: Connection, agent: int, why: str | None, now: float) -> int:
    """An agent goes. What it still had goes back to the queue; the sweep's key."""
    row = _hear(db, agent, now)
    for trial in trials.at_work(db, agent):
        settling.lose(db, trial, now)
    db.execute(
        "UPDATE agents SET left_at = coalesce(left_at, ?), why = coalesce(why, ?) WHERE key = ?",
        (now, why, agent),
    )
    return int(row["sweep"])


@dataclass(frozen=True)
class Heard:
    """What a heartbeat of W&B's own agent comes to, before anything is handed out."""

    sweep: int
    sweep_state: str
    stop: Stop | None
    # Nothing is alive there: it may have something new.
    is_free: bool
    # Something has ended that nobody had told of.
    has_changed: bool


def quiet_until(db: Connection, agent: int, alive: Collection[str], now: float) -> float:
    """Until when a heartbeat of W&B's agent that says the same brings no news.

    Its leases are long, and nothing is asked of its trials: there is nothing to write.
    """
    held = trials.at_work(db, agent)
    if {trial["id"] for trial in held} != set(alive):
        return 0.0
    if any(trial["stop"] is not None or not trial["is_seen"] for trial in held):
        return 0.0
    soonest: float = min((trial["lease"] for trial in held), default=now)
    # A clock that was ahead left leases that are longer than any.
    return min(soonest, now + leases.LEASE_SECONDS) - leases.LEASE_SECONDS / 2


def hear_stock(
    db: Connection, agent: int, alive: Collection[str], up_since: float, now: float
) -> Heard:
    """A heartbeat of W&B's agent, with the ids of the runs that are alive in it.

    What it was given and is not alive any more has ended without a word: it is settled here. One
    that was never heard of may just not have arrived, and goes back as it was. `up_since` is when
    the server started.
    """
    row = _hear(db, agent, now)
    is_first = row["heard_at"] == row["created_at"]
    if row["kind"] == "stock" and is_first and now - row["created_at"] < _FIRST_POLL:
        db.execute("UPDATE agents SET kind = 'function' WHERE key = ?", (agent,))
    stop: Stop | None = None
    has_changed = False
    for trial in trials.at_work(db, agent):
        if trial["id"] not in alive:
            has_changed = True
            _settle_gone(db, trial, up_since, now)
            continue
        leases.extend(db, trial, now)
        is_deaf = row["kind"] == "function" and trial["stop"] is not None
        if stop is None and (is_deaf or is_to_be_told(db, trial, now)):
            stop = Stop(trial["number"], trial["attempt"], trial["id"], trial["stop"])
    if stop is None:
        stop = _not_to_be(db, row, alive)
    state = sweeps.get(db, row["sweep"])["state"]
    return Heard(row["sweep"], state, stop, is_free=not alive, has_changed=has_changed)


def _settle_gone(db: Connection, trial: Row, up_since: float, now: float) -> None:
    run = None if trial["run"] is None else runs.by_key(db, trial["run"])
    was_heard = trial["is_seen"] or (run is not None and run["state"] != "pending")
    began: float = trial["began_at"] or 0.0
    if was_heard or trial["stop"] is not None:
        settling.lose(db, trial, now)
    elif began > up_since and _NEXT_POLL[0] <= now - began < _NEXT_POLL[1]:
        # Once, its answer may have been lost, and asked for again at just this time.
        tries = json.loads(trial["tries"])
        if tries.get(_UNHEARD):
            settling.settle(db, trial, "program", now)
        else:
            trials.update(db, trial, tries=json.dumps({**tries, _UNHEARD: 1}))
            settling.hand_back(db, trial, now)
    else:
        settling.hand_back(db, trial, now)


def _not_to_be(db: Connection, agent: Row, alive: Collection[str]) -> Stop | None:
    """A run that lives on in an agent although its trial is over, or somebody else's."""
    for run_id in alive:
        trial = db.execute(
            "SELECT trials.* FROM trials JOIN runs ON runs.key = trials.run "
            "WHERE runs.id = ? AND trials.sweep = ?",
            (run_id, agent["sweep"]),
        ).fetchone()
        if trial is not None and trial["state"] in ("stopped", "canceled"):
            return Stop(trial["number"], trial["attempt"], run_id, "lost")
    return None


def _hear(db: Connection, agent: int, now: float) -> Row:
    row = by_key(db, agent)
    if row is None:
        raise NoAgent(f"there is no agent {agent}")
    db.execute("UPDATE agents SET heard_at = ?, left_at = NULL WHERE key = ?", (now, agent))
    return row
