"""Run failed trials again, in their folders and under their names; or any run once more."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runyard.actions.connect import open_server
from runyard.actions.events import Notice, Notify
from runyard.actions.naming import Named, find, find_sweep_to_run
from runyard.actions.once_more import once_more
from runyard.actions.submitting.last_request import KEPT, with_last_request
from runyard.actions.submitting.submission import ClusterOptions, Outcome, submit_for
from runyard.actions.sweeping.agent_process import working_folder
from runyard.actions.sweeping.slots import Slots
from runyard.actions.sweeping.task_lists import ListRequest
from runyard.actions.tracking import ProjectOptions
from runyard.client.api import Api
from runyard.config.flags import Flags, FlagValue, flag
from runyard.errors import NotFoundError, UsageError
from runyard.reading.problems import nearest
from runyard.shapes.jobs import Job
from runyard.shapes.runs import RunDetail
from runyard.shapes.sweeps import Sweep, Trial

_EXCLUDE = "resources.exclude"


@dataclass(frozen=True)
class More:
    """So many times what it had, in place of an amount."""

    factor: float
    text: str


def read_more(text: str) -> More | None:
    """+50% or x2; None for what is no change. ValueError where nothing would be left."""
    change = re.fullmatch(r"\+(\d+(?:\.\d+)?)%|x(\d+(?:\.\d+)?)", text)
    if change is None:
        return None
    factor = 1 + float(change[1]) / 100 if change[1] else float(change[2])
    if factor <= 0:
        raise ValueError(f"{text!r} leaves nothing")
    return More(factor, text)


@dataclass(frozen=True)
class RetryRequest:
    """Which trials, and what their new job is to have that the last one had not."""

    what: str | None = None
    """A sweep, a trial, a run or a job; the newest sweep where nothing is named."""
    cause: str | None = None
    trials: Sequence[str] = ()
    options: ProjectOptions = field(default_factory=ProjectOptions)
    """An amount of memory or time among its flags can be `More` than it was."""
    slots: Slots = field(default_factory=Slots)
    excludes_nodes: bool = False
    """Not on the nodes where they failed."""
    on_cluster: bool | None = None
    """None: where it ran."""
    only_queue: bool = False
    """Put them into the queue, no more."""
    as_new_run: bool = False
    """The run that is named, once more, also where it is a trial that failed."""
    cluster: ClusterOptions = field(default_factory=ClusterOptions)


@dataclass(frozen=True)
class Retried:
    """`sweep` is as it was where nothing was changed (`cluster.dry_run`)."""

    sweep: Sweep
    trials: Sequence[Trial]
    submission: Outcome | None = None
    needs_agent: bool = False
    """Whether somebody has to work on it here."""


def retry(request: RetryRequest, notify: Notify) -> Retried | ListRequest:
    """Put failed trials into the queue. A run that is no failed trial is not changed: the answer is
    its command as a list of one, which the caller starts or submits."""
    api = open_server(notify)
    words = request.what
    named = find(api, words) if words is not None else Named(sweep=find_sweep_to_run(api, None))
    run = named.run
    if run is not None and (request.as_new_run or not _has_failed(api, run)):
        again = once_more(api, run, request.options, request.slots)
        (task,) = again.tasks.tasks.values()
        # Whoever made the run chose the command: it is seen before it runs.
        notify(Notice(f"run {run['id']} once more: {task.command_line}"))
        return again
    if request.as_new_run:
        raise UsageError(
            "--new-run is for a run, or a trial of a sweep",
            mend="`runyard runs` lists runs, and `runyard show SWEEP` the trials of a sweep",
        )
    sweep, is_meant = _trials_of(api, named, words)
    failed = [trial for trial in api.sweeps.trials(sweep["key"], state="failed") if is_meant(trial)]
    chosen = _chosen(request, sweep, failed)
    jobs = api.jobs.jobs(sweep=sweep["key"], limit=1)
    on_cluster = bool(jobs) if request.on_cluster is None else request.on_cluster
    if on_cluster and not request.only_queue:
        return _on_cluster(api, request, sweep, chosen, jobs[0] if jobs else None, notify)
    if request.cluster.dry_run:
        return Retried(sweep, chosen)
    after = _again(api, sweep, chosen, notify)
    is_taken = bool(after["agents"]) and request.on_cluster is not False
    return Retried(after, chosen, needs_agent=not request.only_queue and not is_taken)


def name_some(trials: Sequence[Trial]) -> str:
    names = ", ".join(trial["name"] for trial in trials[:5])
    more = f" and {len(trials) - 5} more" if len(trials) > 5 else ""
    return f"{len(trials)} failed trials ({names}{more})"


def _has_failed(api: Api, run: RunDetail) -> bool:
    """Whether it is a trial that failed, and so can run again as the same run."""
    place = run["trial"]
    if place is None:
        return False
    failed = api.sweeps.trials(place["sweep"], state="failed")
    return any(trial["number"] == place["number"] for trial in failed)


def _trials_of(api: Api, named: Named, words: str | None) -> tuple[Sweep, Callable[[Trial], bool]]:
    """The sweep, and which of its trials are meant."""
    if named.sweep is not None:
        return named.sweep, lambda _trial: True
    if named.run is not None and named.run["trial"] is not None:
        place = named.run["trial"]
        number = place["number"]
        return api.sweeps.sweep(place["sweep"]), lambda trial: trial["number"] == number
    job = named.job
    if job is None or job["sweep"] is None:
        raise UsageError(
            f"job {named.number or words} ran no trials that runyard knows",
            mend="`runyard status --jobs` lists its jobs with their sweeps",
        )
    which = job["job_id"] if named.task is None else f"{job['job_id']}_{named.task}"

    def ran_there(trial: Trial) -> bool:
        return which in (trial["job"], (trial["job"] or "").partition("_")[0])

    return api.sweeps.sweep(job["sweep"]), ran_there


def _chosen(request: RetryRequest, sweep: Sweep, failed: list[Trial]) -> list[Trial]:
    if not failed:
        is_part = request.what is not None and request.what not in (sweep["id"], sweep["name"])
        part = f" ({request.what})" if is_part else ""
        raise UsageError(
            f"no trial of sweep {sweep['id']}{part} has failed",
            mend=f"`runyard show {sweep['id']}` says how it stands; `runyard retry TRIAL` runs any "
            "trial once more",
        )
    chosen = failed
    if request.cause is not None:
        chosen = [trial for trial in failed if trial["cause"] == request.cause]
        if not chosen:
            causes = ", ".join(sorted({trial["cause"] or "program" for trial in failed}))
            raise NotFoundError(
                f"no trial of sweep {sweep['id']} failed for {request.cause!r}",
                mend=f"they failed for: {causes}",
            )
    names = {text for trial in failed for text in (trial["name"], trial["id"])}
    for name in request.trials:
        if name not in names:
            guess = nearest(name, names)
            raise NotFoundError(
                f"no failed trial of sweep {sweep['id']} is called {name!r}",
                mend=f"did you mean {guess}?" if guess else f"`runyard status {sweep['id']}`",
            )
    if request.trials:
        wanted = set(request.trials)
        chosen = [trial for trial in chosen if {trial["name"], trial["id"]} & wanted]
    return chosen


def _again(api: Api, sweep: Sweep, chosen: list[Trial], notify: Notify) -> Sweep:
    after = api.sweeps.retry(sweep["key"], [trial["number"] for trial in chosen])
    notify(Notice(f"sweep {after['id']}: {len(chosen)} failed trials run again"))
    return after


def _on_cluster(
    api: Api,
    request: RetryRequest,
    sweep: Sweep,
    chosen: list[Trial],
    last: Job | None,
    notify: Notify,
) -> Retried:
    """A job for them, with what the last one had and what is changed now."""
    from runyard.actions.submitting.planning import SubmissionRequest, plan_submission

    before = {} if last is None else last["asked"]
    failed_on = sorted({trial["node"] for trial in chosen if trial["node"]})
    flags = changed_flags(
        request.options.flags, before, failed_on if request.excludes_nodes else []
    )
    if request.excludes_nodes and failed_on:
        notify(Notice(f"not on {', '.join(failed_on)}"))
    elif request.excludes_nodes:
        notify(Notice("it is not known where they failed"))
    folder = Path(working_folder(sweep["folder"]))
    submission = plan_submission(
        SubmissionRequest(
            "retry", folder, len(chosen), flags, request.slots.count or 1, request.cluster
        ),
        notify,
    )
    if request.cluster.dry_run:
        notify(Notice(f"{name_some(chosen)} would run again"))
    queued: list[Sweep] = []

    def put_into_queue() -> Sweep:
        if sweep["agents"]:
            notify(Notice("agents that are at work may take them too, with what they have"))
        queued.append(_again(api, sweep, chosen, notify))
        return queued[0]

    try:
        outcome = submit_for(submission, put_into_queue, request.cluster, notify, is_new=False)
    except Exception:
        if queued:
            again = f"`runyard agents add {sweep['id']} --on slurm`"
            notify(Notice(f"the trials wait in the queue: {again} runs them"))
        raise
    return Retried(queued[0] if queued else sweep, chosen, submission=outcome)


def changed_flags(flags: Flags, last: Mapping[str, Any], excluded: Sequence[str]) -> Flags:
    """The flags with what the last job asked for, and without the nodes that are excluded."""
    amounts = {}
    for path in KEPT:
        wanted, name = flags[path], path.rpartition(".")[2]
        if isinstance(wanted, More):
            if last.get(name) is None:
                example = "32G" if name == "memory" else "4h"
                raise UsageError(
                    f"--{name} {wanted.text}: it is not known how much it had",
                    mend=f"say how much it is to have: --{name} {example}",
                )
            more = math.ceil(float(last[name]) * wanted.factor)
            amounts[path] = FlagValue(more, wanted.text)
    changed = {path: flag(path, [amount]) for path, amount in amounts.items()}
    flags = with_last_request(Flags({**flags.given, **changed}), last)
    nodes = dict.fromkeys([*str(last.get("exclude") or "").split(","), *excluded])
    avoided = [node for node in nodes if node]
    if not avoided:
        return flags
    return Flags({**flags.given, _EXCLUDE: flag(_EXCLUDE, [*(flags[_EXCLUDE] or ()), *avoided])})
