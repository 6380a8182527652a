"""What runs now, and how much of its machine it uses."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from runyard.actions import naming
from runyard.actions.watching.polling import Polling
from runyard.client.api import Api
from runyard.errors import UsageError
from runyard.schedulers.choice import cluster
from runyard.schedulers.errors import SchedulerError, SchedulerMissing
from runyard.schedulers.jobs import RunningTask
from runyard.shapes.sweeps import Sweep, Trial

_EVERY_SECONDS = 5.0


@dataclass(frozen=True)
class UsageNow:
    """Running trials, running tasks, and what kept Slurm from telling."""

    trials: list[Trial]
    tasks: list[RunningTask]
    trouble: str | None = None

    def to_json(self) -> dict[str, Any]:
        names = ("id", "name", "job", "node", "host", "usage")
        return {
            "trials": [
                {**{name: trial[name] for name in names}, "seconds": seconds_of(trial)}  # type: ignore[literal-required]
                for trial in self.trials
            ],
            "jobs": [asdict(task) for task in self.tasks],
            "trouble": self.trouble,
        }


def watch_usage(
    words: str | None, api: Api, connect: Callable[[], Api], *, is_watched: bool = False
) -> Iterator[UsageNow]:
    """The use now; `is_watched`: again and again, without an end."""
    polling = Polling(api, connect, _EVERY_SECONDS)
    for usage in polling.answers(lambda api: usage_now(api, words)):
        yield usage
        if not is_watched:
            return


def usage_now(api: Api, words: str | None) -> UsageNow:
    """Of all that runs, or of a sweep, a trial or a job that is named."""
    only: set[str] | None = None
    if words is None:
        trials = [
            trial for sweep in api.sweeps.sweeps(open_only=True) for trial in _running(api, sweep)
        ]
    else:
        named = naming.find(api, words)
        if named.sweep is not None:
            trials = _running(api, named.sweep)
            only = {_job(trial) for trial in trials if trial["job"]}
        elif named.run is not None:
            trials = _trial_of(api, named.run["id"])
            if not trials:
                raise UsageError(
                    f"{named.run['name']} ({named.run['id']}) is no trial of a sweep that runs",
                    mend="`runyard status --live` shows all that runs",
                )
            only = {_job(trial) for trial in trials if trial["job"]}
        elif named.job is not None:
            job, of = named.job["job_id"], named.job["sweep"]
            trials = [] if of is None else api.sweeps.trials(of, state="running")
            trials = [trial for trial in trials if _job(trial) == job]
            only = {job}
        else:
            trials, only = [], {named.number or ""}
    if only is not None and not only:
        return UsageNow(trials, [])
    try:
        return UsageNow(trials, cluster().running_tasks(only))
    except SchedulerMissing:
        return UsageNow(trials, [])
    except SchedulerError as error:
        return UsageNow(trials, [], f"{error.what} ({error.said})")


def _running(api: Api, sweep: Sweep) -> list[Trial]:
    if not sweep["counts"]["running"]:
        return []
    return api.sweeps.trials(sweep["key"], state="running")


def _trial_of(api: Api, run_id: str) -> list[Trial]:
    return [
        trial
        for sweep in api.sweeps.sweeps(open_only=True)
        for trial in _running(api, sweep)
        if trial["id"] == run_id
    ]


def _job(trial: Trial) -> str:
    return (trial["job"] or "").partition("_")[0]


def seconds_of(trial: Trial) -> float:
    """How long its attempt has run."""
    return seconds_since(trial["began_at"] or trial["started_at"])


def seconds_since(then: float | None) -> float:
    return 0.0 if then is None else max(0.0, time.time() - then)
