"""`runyard.sweep`: of a function in this process, or of a program here or on the cluster."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from runyard.actions.sweeping.slots import Slots
from runyard.client.sweeps import OPEN_STATES
from runyard.errors import UsageError
from runyard.home import Home, locate
from runyard.schedulers.choice import HERE, has_queue
from runyard.scripting.options import (
    JobOptions,
    JobResources,
    choose_place,
    log_notice,
    read_options,
)
from runyard.scripting.watch import Watch
from runyard.shapes import sweeps as records
from runyard.shapes.runs import Run
from runyard.shapes.sweeps import Trial
from runyard.vocabulary import ENDED_STATES

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from runyard.actions.sweeping.agent_process import AgentStarted
    from runyard.actions.sweeping.sweep_plan import Plan

Config = Mapping[str, Any] | str | os.PathLike[str]


class Sweep(Mapping[str, Any]):
    """A sweep that was started. As a mapping it is the last record that the server sent."""

    def __init__(
        self, record: records.Sweep, home: Home, agent: AgentStarted | None = None
    ) -> None:
        self._record = record
        self._watch = Watch(record, home, agent)

    def __getitem__(self, name: str) -> Any:
        return self._record[name]  # type: ignore[literal-required]

    def __iter__(self) -> Iterator[str]:
        return iter(self._record)

    def __len__(self) -> int:
        return len(self._record)

    def __repr__(self) -> str:
        ended = sum(self._record["counts"].get(state, 0) for state in ENDED_STATES)
        size = "" if self._record["expected"] is None else f" of {self._record['expected']}"
        return f"<Sweep {self.id} {self._record['state']}, {ended}{size} trials done>"

    @property
    def id(self) -> str:
        """As commands take it: `runyard status ID`."""
        return self._watch.id

    @property
    def state(self) -> str:
        """running, paused, finished, failed or canceled."""
        self._record = self._watch.sweep()
        return self._record["state"]

    def done(self) -> bool:
        return self.state not in OPEN_STATES

    def wait(self, timeout: float | None = None) -> Sweep:
        """Wait for its end; returns this sweep. TimeoutError after `timeout` seconds."""
        self._watch.wait(self.done, timeout)
        return self

    def trials(self) -> list[Trial]:
        """All trials, each with its values, metrics and final state."""
        return self._watch.trials()

    def best(self) -> Trial | None:
        """The best trial so far; None if there is no metric, or no finished trial."""
        self._record = self._watch.sweep()
        return self._record["best"]

    def runs(self) -> list[Run]:
        """The tracked runs of its trials."""
        return self._watch.api.runs(sweep=self._watch.key)

    def logs(self) -> str:
        """The output of its trials so far; each line begins with the trial's name and a tab."""
        from runyard.actions.watching.log_events import LogLines, LogsRequest
        from runyard.actions.watching.logs import read_logs

        api = self._watch.api
        pieces = read_logs(LogsRequest(f"sweep:{self.id}"), api, lambda: api)
        return "".join(
            f"{piece.source}\t{line}\n"
            for piece in pieces
            if isinstance(piece, LogLines)
            for line in piece.lines
        )

    def set_budget(self, budget: str | None) -> None:
        """Another budget ("300 gpu-hours"), or none. A larger one lets an ended sweep go on, once
        an agent works on it again."""
        self._record = self._watch.api.sweeps.set_budget(self._watch.key, budget)

    def cancel(self) -> None:
        """End it, with its running trials and its jobs; does nothing if it has ended."""
        if not self.done():
            self._watch.cancel()


def sweep(
    config: Config,
    function: Callable[[], object] | None = None,
    *,
    count: int | None = None,
    slots: int | None = None,
    per_gpu: int | str | None = None,
    gpus: int | str | None = None,
    mps: str | None = None,
    warm: str | Sequence[str] | None = None,
    project: str | None = None,
    entity: str | None = None,
    on: str | None = None,
    wait: bool | None = None,
    budget: str | None = None,
    settings: Mapping[str, Any] | None = None,
    **resources: Unpack[JobResources],
) -> Sweep:
    """Start a sweep. `config` is the content of a sweep file, or the path of one.

    With a function, each trial is a call of it in this process, one at a time, at most `count`; it
    finds its values in `wandb.config` after `wandb.init()`. Without a function, the program or
    command of the sweep runs, `slots` at a time, or `per_gpu` on each GPU (a number, or "auto").
    `gpus`, `mps`, `warm` (a module or a list of them) and `budget` ("200 gpu-hours") are those of
    `runyard sweep`.

    By default the sweep runs here, and the call returns at its end, as the command does. With
    on="slurm" it is submitted with the requested resources, and the call returns at once.
    wait=False runs it here in the background; wait=True waits for the jobs.
    """
    if function is not None:
        for_programs = (per_gpu, gpus, on, warm, *resources)
        if slots not in (None, 1) or any(value is not None for value in for_programs):
            raise UsageError(
                "a function's trials run one at a time, in this process",
                mend="leave slots out; or name a program in the sweep, and leave the function out",
            )
        from runyard.scripting.function_sweep import call_function

        home = locate()
        return Sweep(call_function(home, config, function, count, project, entity, budget), home)
    owner = {"project": project, "entity": entity, "warm": warm}
    place = choose_place(on or HERE)
    if has_queue(place):
        # Of a job they are settings: how many agents share its GPUs, and how.
        agents = {"agents.per_gpu": per_gpu, "agents.mps": mps}
        shares = {name: value for name, value in agents.items() if value is not None}
        options = {**resources, "gpus": gpus, "on": place, **owner}
        job_options = read_options({**options, "settings": {**shares, **(settings or {})}})
        plan = _plan(config, job_options, budget)
        started = _submit(plan, job_options, slots or 1, count)
        return started.wait() if wait else started
    if wait is None or wait:
        _refuse_resources(resources, settings)
    job_options = read_options({**resources, **owner, "settings": settings or {}}, default=place)
    gpu_words = None if gpus is None else str(gpus)
    if gpu_words is not None and gpu_words.isdecimal():
        gpu_words = f"auto:{gpu_words}"  # So many of those that are here, as the command has it.
    plan = _plan(config, job_options, budget)
    here = Slots(slots, per_gpu, gpu_words, mps)
    if wait is None or wait:
        return _work(plan, job_options, here, count)
    return _start(plan, job_options, here, count)


def _work(plan: Plan, job_options: JobOptions, slots: Slots, count: int | None) -> Sweep:
    """In the foreground: the agent tells on stderr how far it is."""
    from runyard.actions.sweeping.agent_process import Limits
    from runyard.actions.sweeping.sweep import create_sweep, estimate_sweep
    from runyard.actions.sweeping.work import Waiting, WorkRequest, work

    record = create_sweep(plan, (), log_notice)
    estimate_sweep(plan, slots.count, log_notice, record)
    request = WorkRequest(record, job_options.project, slots, Limits(count))
    worked = work(request, Waiting(), log_notice)
    failed = [{"trial": trial, "why": why} for trial, why in worked.failures]
    return Sweep(cast(records.Sweep, {**worked.sweep, "failures": failed}), locate())


def _start(plan: Plan, job_options: JobOptions, slots: Slots, count: int | None) -> Sweep:
    """By an agent of this machine in the background."""
    from runyard.actions.sweeping.agent_process import Limits, start_agent
    from runyard.actions.sweeping.sweep import create_sweep
    from runyard.actions.tracking import agent_variables

    variables = agent_variables(job_options.project, plan.folder, log_notice)
    record = create_sweep(plan, (), log_notice)
    agent = start_agent(record, slots, variables, Limits(count, job_options.seconds))
    return Sweep(record, locate(), agent)


def _submit(plan: Plan, job_options: JobOptions, slots: int, count: int | None) -> Sweep:
    from runyard.actions.submitting.submission import ClusterOptions, SweepSubmitted
    from runyard.actions.sweeping.sweep import submit_sweep

    if count is not None:
        raise UsageError(
            "count is for this machine", mend="write run_cap into the sweep: so many trials in all"
        )
    flags = job_options.project.flags
    outcome = submit_sweep(plan, flags, slots, (), ClusterOptions(), log_notice)
    assert isinstance(outcome, SweepSubmitted), "nobody was asked, and it was no preview"
    return Sweep(outcome.sweep, locate())


def _plan(config: Config, job_options: JobOptions, budget: str | None) -> Plan:
    from runyard.actions.sweeping.sweep_plan import SweepSource, make_plan
    from runyard.actions.trying.program_checks import check_plan
    from runyard.config.overrides import Overrides

    overrides = Overrides(warm=job_options.warm or None, budget=budget)
    if isinstance(config, Mapping):
        name, text = "the sweep", json.dumps(dict(config))
    else:
        name, text = str(Path(config)), None
    source = SweepSource(name, overrides, options=job_options.project, text=text)
    plan = make_plan(source, log_notice)
    check_plan(plan, log_notice)
    return plan


def _refuse_resources(resources: Mapping[str, Any], settings: Mapping[str, Any] | None) -> None:
    words = [*resources, *(["settings"] if settings else [])]
    if words:
        raise UsageError(
            f"{', '.join(words)}: for a job of the cluster",
            mend='add on="slurm", or leave them out',
        )
