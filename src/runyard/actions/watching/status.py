"""How all that is at work stands, or one sweep, trial or job."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from runyard.actions import naming
from runyard.actions.events import Notice, Notify
from runyard.actions.watching.chains import ChainState, chain_of
from runyard.actions.watching.failures import failures
from runyard.actions.watching.jobs import job_json
from runyard.actions.watching.polling import Polling
from runyard.client.api import Api
from runyard.client.sweeps import OPEN_STATES
from runyard.client.unreached import Unreached, read_unreached
from runyard.errors import NotFoundError, RunyardError
from runyard.home import locate
from runyard.launch.watching import Looked, look
from runyard.shapes.jobs import Job
from runyard.shapes.runs import Run, RunDetail
from runyard.shapes.sweeps import Sweep, Trial

MOST_FAILED, _MOST_JOBS = 5, 50
_EVERY_SECONDS = 2.0
# The controller serves a whole site: it is not asked as often as our own server.
_ASK_QUEUE_SECONDS = 15.0


@dataclass(frozen=True)
class Status:
    """Sweeps with their failures, jobs and runs, as they are at one moment."""

    sweeps: list[tuple[Sweep, list[tuple[Trial, str]]]] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    looked: Looked = field(default_factory=lambda: Looked([]))
    task: str | None = None
    chains: dict[int, ChainState | None] = field(default_factory=dict)
    """By the sweep's key."""
    unreached: list[Unreached] = field(default_factory=list)
    """Nodes whose agents wait for a server that they do not reach."""

    def of(self, sweep: Sweep) -> list[Job]:
        return [job for job in self.jobs if job["sweep"] == sweep["key"]]

    @property
    def others(self) -> list[Job]:
        """Jobs whose sweep is not among those shown."""
        keys = {sweep["key"] for sweep, _ in self.sweeps}
        return [job for job in self.jobs if job["sweep"] not in keys]

    @property
    def is_over(self) -> bool:
        return (
            all(sweep["state"] not in OPEN_STATES for sweep, _ in self.sweeps)
            and all(run["state"] not in ("running", "pending") for run in self.runs)
            and all(job["ended_at"] is not None for job in self.jobs)
        )

    def to_json(self) -> dict[str, Any]:
        polled = [job["polled_at"] for job in self.looked.jobs if job["polled_at"] is not None]
        return {
            "sweeps": [
                {
                    **sweep,
                    "failures": [{"trial": trial, "why": why} for trial, why in failed],
                    "chain": asdict(chain) if (chain := self.chains.get(sweep["key"])) else None,
                    "jobs": [job_json(job, self.looked) for job in self.of(sweep)],
                }
                for sweep, failed in self.sweeps
            ],
            "runs": self.runs,
            "jobs": [job_json(job, self.looked) for job in self.others],
            "slurm": {"trouble": self.looked.trouble, "polled_at": max(polled, default=None)},
            "unreached": [asdict(node) for node in self.unreached],
        }


def watch_status(
    words: str | None, api: Api, connect: Callable[[], Api], *, is_watched: bool = False
) -> Iterator[Status]:
    """Of a sweep, a trial or a job, or of all that is at work; `is_watched`: again and again until
    it is over."""
    polling, looked, asked_at = Polling(api, connect, _EVERY_SECONDS), Looked([]), None
    for status in polling.answers(lambda api: _gather(api, words)):
        if asked_at is None or time.monotonic() - asked_at >= _ASK_QUEUE_SECONDS:
            looked, asked_at = look(polling.api.jobs, status.jobs), time.monotonic()
        shown = _with_queue(status, looked)
        chains = _chains(polling.api, shown)
        yield replace(shown, chains=chains, unreached=list(read_unreached(locate())))
        if not is_watched or shown.is_over:
            return


def submit_held(api: Api, notify: Notify) -> None:
    """Submit the agents that a limit of Slurm's kept out, if there is room for them now."""
    home = locate()
    if not any((home.path / "held").glob("*.json")):
        return
    from runyard.actions.submitting.submission import send_held_agents
    from runyard.launch.held import count_held

    with contextlib.suppress(RunyardError):
        sent = send_held_agents(api, home)
        if sent:
            notify(Notice(f"{sent} agents that were held back are submitted"))
    for key, count in count_held(home.path).items():
        with contextlib.suppress(RunyardError):
            name = api.sweeps.sweep(key)["id"]
            until = "are held back until Slurm takes more of your jobs"
            notify(Notice(f"sweep {name}: {count} agents {until}"))


def _gather(api: Api, words: str | None) -> Status:
    if words is None:
        return Status(
            [_with_failures(api, sweep) for sweep in api.sweeps.sweeps(open_only=True)],
            api.runs(state="running", alone=True),
            api.jobs.jobs(open_only=True),
        )
    named = naming.find(api, words)
    if named.sweep is not None:
        jobs = api.jobs.jobs(sweep=named.sweep["key"], limit=_MOST_JOBS)
        return Status([_with_failures(api, named.sweep)], jobs=jobs)
    if named.run is not None:
        return Status(runs=[named.run], jobs=_jobs_of(api, named.run))
    if named.job is not None:
        return Status(jobs=[named.job], task=named.task)
    from runyard.actions.watching.foreign_jobs import look_at

    looked = look_at(named.number or words)
    return Status(jobs=looked.jobs, looked=looked, task=named.task)


def _with_failures(api: Api, sweep: Sweep) -> tuple[Sweep, list[tuple[Trial, str]]]:
    return sweep, failures(api, sweep, last=MOST_FAILED)


def _jobs_of(api: Api, run: RunDetail) -> list[Job]:
    if run["job"] is None:
        return []
    try:
        return [api.jobs.job(run["job"])]
    except NotFoundError:
        return []


def _with_queue(status: Status, before: Looked) -> Status:
    known = {job["key"]: job for job in before.jobs}
    jobs = [known.get(job["key"], job) for job in status.jobs]
    looked = replace(before, jobs=jobs, queue={**status.looked.queue, **before.queue})
    return replace(status, jobs=jobs, looked=looked)


def _chains(api: Api, status: Status) -> dict[int, ChainState | None]:
    if not any(job["asked"].get("chain") for job in status.jobs):
        return {}
    from runyard.launch.held import count_held

    held = count_held(locate().path)
    return {
        sweep["key"]: chain_of(api, status.of(sweep), held.get(sweep["key"], 0))
        for sweep, _ in status.sweeps
    }
