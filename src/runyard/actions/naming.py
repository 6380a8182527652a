"""What a person means by a word: a job of Slurm's, a sweep or a trial.

The order is fixed. A number (123, 123_4, CLUSTER/123) is a job; it can be the whole id or name of a
sweep or a run, where there is no such job, but no part of one. Anything else is a sweep or a run,
whichever it is nearer to: its id, then its name, then a part. What is as near to both is told,
unless the run is a trial of that sweep, and so is what means several of a kind. At last, the name
of a job. `job:`, `sweep:` or `trial:` before the word leaves no choice.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from runyard.client.api import Api
from runyard.errors import NotFoundError, UsageError
from runyard.reading.problems import nearest
from runyard.shapes.jobs import JobDetail
from runyard.shapes.runs import RunDetail
from runyard.shapes.sweeps import Sweep

_NUMBER = re.compile(r"(?:[^/]+/)?([0-9]+)(?:_([0-9]+))?(?:\.\w+)?")
_KINDS = {"job": "job", "sweep": "sweep", "trial": "run", "run": "run"}
_PART = 2
_LIST = "`runyard runs` and `runyard runs --sweeps` list what there is (jobs: `status --jobs`)"
Found = TypeVar("Found")


@dataclass(frozen=True)
class Named:
    """One of the three; `task` is the task of the job that was named. A job that runyard did not
    submit has a `number` and nothing else."""

    sweep: Sweep | None = None
    run: RunDetail | None = None
    job: JobDetail | None = None
    number: str | None = None
    task: str | None = None


def find(api: Api, words: str) -> Named:
    """What the user means; NotFoundError where it is nothing, or more than one thing."""
    kind, _, rest = words.partition(":")
    if kind in _KINDS and rest:
        return _of_kind(api, _KINDS[kind], rest)
    number = _NUMBER.fullmatch(words)
    if number is not None:
        job_named, _ = _try(lambda: api.jobs.job(words))
        if job_named is not None:
            return Named(job=job_named, task=number[2])
    sweep, many_sweeps = _try(lambda: api.sweeps.find(words))
    run, many_runs = _try(lambda: api.run(words))
    if number is not None:
        # A number is never a part of an id: who cancels job 5 does not mean trial 5x8k2m1p.
        sweep = sweep if sweep is not None and _distance(words, sweep) < _PART else None
        run = run if run is not None and _distance(words, run) < _PART else None
        many_sweeps = many_runs = None
    if sweep is not None and run is not None:
        return _nearer(words, sweep, run)
    if sweep is not None or run is not None:
        return Named(sweep=sweep, run=run)
    many = many_sweeps or many_runs
    if many is not None:
        many.mend = "name one of these"
        raise many
    if number is not None:
        return Named(number=number[1], task=number[2])
    job, many = _try(lambda: api.jobs.job(words))
    if many is not None:
        many.mend = "name one of these by its number"
        raise many
    if job is not None:
        return Named(job=job)
    raise NotFoundError(f"there is no sweep, trial or job {words!r}", mend=_LIST)


def find_run(api: Api, words: str | None) -> RunDetail:
    """The run that the user named, or the newest."""
    if words is None:
        newest = api.runs(limit=1)
        if not newest:
            raise NotFoundError(
                "there are no runs yet", mend="`runyard run -- python train.py` makes one"
            )
        words = f"{newest[0]['project']}/{newest[0]['id']}"
    try:
        return api.run(words)
    except NotFoundError as error:
        error.mend = "`runyard runs` and `runyard runs --sweeps` list what there is"
        raise


def find_sweep(api: Api, words: str | None) -> Sweep:
    """The sweep that the user named, or the newest; an unknown one with the closest names."""
    if words is None:
        newest = api.sweeps.sweeps(limit=1)
        if not newest:
            raise NotFoundError(
                "there are no sweeps yet", mend="`runyard sweep sweep.yaml` makes one"
            )
        return newest[0]
    try:
        return api.sweeps.find(words)
    except NotFoundError as error:
        names = [name for sweep in api.sweeps.sweeps() for name in (sweep["id"], sweep["name"])]
        guess = nearest(words.rpartition("/")[2], names)
        error.mend = f"did you mean {guess}?" if guess else "`runyard runs --sweeps` lists them"
        raise


def find_sweep_to_run(api: Api, words: str | None) -> Sweep:
    """The same, for what runs its command. The newest alone could be a stranger's: whoever finds
    a program's key makes one through W&B's interface; those have no folder."""
    sweep = find_sweep(api, words)
    if words is None and sweep["folder"] is None:
        raise UsageError(
            f"the newest sweep, {sweep['id']} ({sweep['name']}), was not made by runyard, "
            "but by a client of W&B",
            mend=f"if it is yours, name it: {sweep['id']}",
        )
    return sweep


def find_run_or_sweep(api: Api, words: str | None) -> Named:
    """A run, or the sweep of that name where there is no such run."""
    try:
        return Named(run=find_run(api, words))
    except NotFoundError:
        try:
            sweep = api.sweeps.find(words) if words else None
        except NotFoundError:
            sweep = None
        if sweep is None:
            raise
    return Named(sweep=sweep)


def _of_kind(api: Api, kind: str, words: str) -> Named:
    if kind == "sweep":
        return Named(sweep=api.sweeps.find(words))
    if kind == "run":
        return Named(run=api.run(words))
    number = _NUMBER.fullmatch(words)
    job, error = _try(lambda: api.jobs.job(words))
    if job is not None:
        return Named(job=job, task=number[2] if number else None)
    if error is not None or number is None:
        raise error or NotFoundError(f"there is no job {words!r}", mend="`runyard status --jobs`")
    return Named(number=number[1], task=number[2])


def _nearer(words: str, sweep: Sweep, run: RunDetail) -> Named:
    to_sweep, to_run = _distance(words, sweep), _distance(words, run)
    if to_sweep != to_run:
        return Named(sweep=sweep) if to_sweep < to_run else Named(run=run)
    if run["trial"] is not None and run["trial"]["sweep"] == sweep["key"]:
        return Named(sweep=sweep)  # Its own trial: one program that was submitted under a name.
    raise UsageError(
        f"{words!r} is a sweep ({sweep['id']} {sweep['name']}) and a run ({run['id']} "
        f"{run['name']})",
        mend=f"write sweep:{words} or trial:{words}",
    )


def _distance(words: str, record: Sweep | RunDetail) -> int:
    """0 for its id, 1 for its name, _PART for a part of either."""
    name = words.rpartition("/")[2]
    return 0 if record["id"] == name else 1 if record["name"] in (name, words) else _PART


def _try(ask: Callable[[], Found]) -> tuple[Found | None, NotFoundError | None]:
    """What was found; or the error, where there are several."""
    try:
        return ask(), None
    except NotFoundError as error:
        return None, error if "is more than one" in error.what else None
