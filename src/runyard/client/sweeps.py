"""Sweeps and their agents, through the server's own API, typed.

Every call may be repeated when no answer came: agents, claims and ends are known by what they
bring.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from runyard.client.http import Connection
from runyard.sweep_states import ENDED_STATES as ENDED_STATES
from runyard.sweep_states import OPEN_STATES as OPEN_STATES


class Problem(TypedDict):
    """What is wrong in a sweep's file, where, and what to write instead."""

    path: list[str | int]
    message: str
    mend: str


class Trial(TypedDict):
    """One setting of a sweep. `value` is the first metric, `values` are the settings."""

    number: int
    id: str
    run: int | None
    name: str
    state: str
    cause: str | None
    values: dict[str, Any]
    value: float | None
    metrics: dict[str, float]
    attempts: int
    agent: int | None
    host: str | None
    node: str | None
    job: str | None
    usage: dict[str, Any] | None
    began_at: float | None
    created_at: float
    started_at: float | None
    ended_at: float | None
    seconds: float
    seconds_left: float | None
    exit_code: int | None


class SweepAgent(TypedDict):
    """`over_since`: since when a program of its runs on although its run has ended."""

    key: int
    kind: str
    host: str
    pid: int | None
    slots: int
    job: str | None
    node: str | None
    created_at: float
    heard_at: float
    running: int
    usage: dict[str, Any] | None
    over_since: float | None


class Sweep(TypedDict):
    """One sweep as the server tells it. `expected` is null where it has no end of its own."""

    key: int
    id: str
    name: str
    description: str | None
    entity: str
    project: str
    method: str
    state: str
    cause: str | None
    config: dict[str, Any]
    run_cap: int | None
    expected: int | None
    counts: dict[str, int]
    trials: int
    attempts: int
    agents: list[SweepAgent]
    metric: str | None
    goal: str | None
    best: Trial | None
    eta_seconds: float | None
    seed: int
    folder: str | None
    created_at: float
    started_at: float | None
    ended_at: float | None


class CreatedSweep(Sweep):
    warnings: list[Problem]


class Worker(TypedDict):
    """An agent that works on a sweep, or did; `job` is Slurm's: 123, or 123_4 in an array."""

    key: int
    kind: str
    host: str
    slots: int
    job: str | None
    node: str | None
    created_at: float
    heard_at: float
    left_at: float | None


class Effort(TypedDict):
    """One attempt of a trial, by the trial's number; `usage` is what its agent measured."""

    trial: int
    number: int
    agent: int | None
    host: str
    started_at: float
    ended_at: float | None
    exit_code: int | None
    cause: str | None
    usage: dict[str, Any] | None


class Work(TypedDict):
    """All that was done for a sweep; `causes` says in words why attempts end."""

    agents: list[Worker]
    attempts: list[Effort]
    causes: dict[str, str]


class Columns(TypedDict):
    """A sweep's trials as columns; `convergence` has each that was better than all before it."""

    metrics: list[dict[str, Any]]
    parameters: list[dict[str, Any]]
    trials: dict[str, list[Any]]
    values: dict[str, list[Any]]
    places: dict[str, list[float | None]]
    measured: dict[str, list[Any]]
    front: list[int]
    convergence: list[dict[str, Any]]


class Importance(TypedDict):
    """How much each parameter matters; `explained` is null where too few trials tell."""

    metric: str
    trials: int
    needed: int
    explained: float | None
    parameters: list[dict[str, Any]]


class Begun(TypedDict):
    """An agent's key, and within how many seconds it must be heard again."""

    agent: int
    lease_seconds: float


class ClaimedRun(TypedDict):
    """The run that a trial is: where it is tracked, and how many rows it has already."""

    key: int
    id: str
    name: str
    entity: str
    project: str
    folder: str | None
    steps: int


class Claimed(TypedDict, total=False):
    """`do`: run what follows; wait, and claim again; or exit, since the sweep is over."""

    do: Literal["run", "wait", "exit"]
    why: str
    trial: Trial
    attempt: int
    run: ClaimedRun
    command: list[Any] | None
    program: str | None
    args: dict[str, Any]
    task: dict[str, Any] | None
    sweep: str


class Held(TypedDict):
    """An attempt that an agent has."""

    trial: int
    attempt: int


class Stop(Held):
    why: Literal["stopped", "canceled", "paused", "nan", "lost"]


class Over(Held):
    """An attempt whose client has ended the run, with the exit code that it told."""

    exit_code: int


class Renewed(TypedDict):
    stop: list[Stop]
    over: list[Over]
    lease_seconds: float


class SweepApi:
    """Every call about sweeps."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def create(
        self,
        config: str | Mapping[str, Any],
        *,
        project: str | None = None,
        entity: str | None = None,
        folder: str | None = None,
        name: str | None = None,
        prior_runs: Sequence[str] = (),
        seed: int | None = None,
    ) -> CreatedSweep:
        """Make a sweep of a file's text or data; `folder` is where its programs run.

        Its trials have their own folders there: sweeps/ID/NAME.
        """
        made: CreatedSweep = self._connection.post(
            "/api/sweeps",
            {
                "config": config,
                "project": project,
                "entity": entity,
                "folder": folder,
                "name": name,
                "prior_runs": list(prior_runs),
                "seed": seed,
            },
        )
        return made

    def sweeps(
        self, *, project: str | None = None, limit: int | None = None, open_only: bool = False
    ) -> list[Sweep]:
        """The newest first; with `open_only`, those that are not over."""
        found: list[Sweep] = self._connection.get(
            "/api/sweeps", project=project, limit=limit, open=1 if open_only else None
        )
        return found

    def find(self, words: str) -> Sweep:
        """By id, by name, or by a part of either that only one has."""
        found: Sweep = self._connection.get("/api/sweep", name=words)
        return found

    def sweep(self, key: int) -> Sweep:
        found: Sweep = self._connection.get(f"/api/sweeps/{key}")
        return found

    def trials(self, key: int, *, state: str | None = None, last: int | None = None) -> list[Trial]:
        """By number; with `last`, only so many, the last to end, in the order of their ends."""
        found: list[Trial] = self._connection.get(
            f"/api/sweeps/{key}/trials", state=state, last=last
        )
        return found

    def work(self, key: int) -> Work:
        """Who worked on it, and every attempt."""
        found: Work = self._connection.get(f"/api/sweeps/{key}/work")
        return found

    def columns(self, key: int) -> Columns:
        found: Columns = self._connection.get(f"/api/sweeps/{key}/columns")
        return found

    def importance(self, key: int) -> Importance:
        """For the first of its metrics; NotFoundError where it has none."""
        found: Importance = self._connection.get(f"/api/sweeps/{key}/importance")
        return found

    def set_state(
        self, key: int, state: Literal["running", "paused", "finished", "canceled"]
    ) -> Sweep:
        """Resume, pause, stop (trials at work go on) or cancel (they end)."""
        changed: Sweep = self._connection.post(f"/api/sweeps/{key}/state", {"state": state})
        return changed

    def delete(self, key: int) -> None:
        """Delete a sweep that nobody has worked on; ServerError where somebody has."""
        self._connection.request("DELETE", f"/api/sweeps/{key}", query=None)

    def set_cap(self, key: int, run_cap: int | None) -> Sweep:
        changed: Sweep = self._connection.post(f"/api/sweeps/{key}/cap", {"run_cap": run_cap})
        return changed

    def retry(self, key: int, trials: Sequence[int] | None = None) -> Sweep:
        """Run failed trials again: those named, or all."""
        numbers = None if trials is None else list(trials)
        changed: Sweep = self._connection.post(f"/api/sweeps/{key}/retry", {"trials": numbers})
        return changed

    def begin_agent(
        self,
        key: int,
        *,
        token: str,
        host: str,
        pid: int,
        slots: int,
        job: str | None = None,
        node: str | None = None,
    ) -> Begun:
        """Announce an agent; `token` makes a repeated call the same call.

        `job` and `node` are Slurm's words for where it is: 123, or 123_4 in an array.
        """
        given = {"token": token, "host": host, "pid": pid, "slots": slots, "job": job, "node": node}
        begun: Begun = self._connection.post(f"/api/sweeps/{key}/agents", given)
        return begun

    def claim(self, agent: int, *, token: str, wait: float = 0.0) -> Claimed:
        """Take the next trial; waits up to `wait` seconds for one.

        `token` is new for each claim, and the same when one is repeated because no answer came:
        that gives the trial which the first call may have taken. After any answer, another token.
        """
        claimed: Claimed = self._connection.post(
            f"/api/agents/{agent}/claim", {"token": token, "wait": wait}
        )
        return claimed

    def renew(self, agent: int, running: Sequence[Held]) -> Renewed:
        """Say which attempts are alive; hear which of them are to end now.

        What is to stop or pause is told to its own wandb client first, which ends it and keeps
        every row; the agent hears of it a minute later, if it still runs, or at once if it has no
        client.

        Within `lease_seconds`, or they are handed to somebody else. `lost` is one that was: it must
        end at once, and its end is not told.
        """
        renewed: Renewed = self._connection.post(
            f"/api/agents/{agent}/renew", {"running": list(running)}
        )
        return renewed

    def end(
        self,
        agent: int,
        trial: int,
        attempt: int,
        *,
        exit_code: int,
        ended_at: float,
        cause: str | None = None,
    ) -> Trial:
        """An attempt has ended; `exit_code` is negative for the signal that ended it.

        `cause` (finished, go-on, time, preempted, node, cut, memory, nan, program, signal, stopped)
        where the agent knows more than the code tells. It may be told late, and more than once.
        """
        told = self._connection.post(
            f"/api/agents/{agent}/ends",
            {
                "trial": trial,
                "attempt": attempt,
                "exit_code": exit_code,
                "cause": cause,
                "ended_at": ended_at,
            },
        )
        ended: Trial = told["trial"]
        return ended

    def leave(self, agent: int, why: str | None = None) -> None:
        """The agent goes; what it still had goes back to the queue."""
        self._connection.post(f"/api/agents/{agent}/leave", {"why": why})
