"""A list of command lines as a sweep: made, resumed by its job log, run here or submitted."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from runyard.actions.connect import open_server
from runyard.actions.estimates import Subject, estimate_here, options_of_kind
from runyard.actions.events import Notice, Notify
from runyard.actions.owner import Owner, find_owner
from runyard.actions.submitting.submission import ClusterOptions, Outcome, submit_for
from runyard.actions.sweeping.agent_process import AgentStarted, Limits, start_agent
from runyard.actions.sweeping.job_log import read_job_log
from runyard.actions.sweeping.slots import Slots
from runyard.actions.tracking import ProjectOptions, agent_variables
from runyard.client.sweeps import Sweep
from runyard.errors import ConfigError

if TYPE_CHECKING:
    from runyard.config.task_list import TaskList

_SEED = "{seed}"


@dataclass(frozen=True)
class ListRequest:
    """Command lines, each of which becomes a trial, and where they run."""

    tasks: TaskList
    folder: Path
    options: ProjectOptions = field(default_factory=ProjectOptions)
    slots: Slots = field(default_factory=Slots)
    name: str | None = None
    retries: int | None = None
    metric: str | None = None
    """What the best are chosen by."""
    goal: str = "minimize"
    log: Path | None = None
    """Of GNU parallel's form; None: beside the trials."""


def begin_list(request: ListRequest, notify: Notify) -> Sweep:
    """Make the sweep, for agents of this machine."""
    sweep = make_list(request, notify)
    many = f"{sweep['expected']} command lines, {request.slots}"
    notify(Notice(f"{_named(sweep)}: {many}"))
    estimate_list(request, notify, sweep)
    return sweep


def start_list(
    request: ListRequest, notify: Notify, seconds: float | None = None
) -> tuple[Sweep, AgentStarted]:
    """Make the sweep, and let an agent of this machine work it off in the background."""
    variables = agent_variables(request.options, request.folder, notify)
    sweep = make_list(request, notify)
    return sweep, start_agent(sweep, request.slots, variables, Limits(seconds=seconds))


def make_list(request: ListRequest, notify: Notify) -> Sweep:
    from runyard.config.task_list import sweep_config

    config = sweep_config(
        request.tasks,
        "bash" if shutil.which("bash") else "sh",
        retries=request.retries,
        stop_after_failures=0,
        job_log=None if request.log is None else str(request.log),
    )
    if request.metric:
        config["metric"] = {"name": request.metric, "goal": request.goal}
    if request.name:
        config["name"] = request.name
    owner = find_owner(request.options, request.folder)
    return open_server(notify).sweeps.create(
        config, project=owner.project, entity=owner.entity, folder=str(request.folder)
    )


def submit_list(
    request: ListRequest, kind: str, cluster: ClusterOptions, notify: Notify
) -> Outcome:
    """Agents for a list, as jobs of the cluster; the list is made when all else is sure."""
    from runyard.actions.submitting.planning import SubmissionRequest, plan_submission

    tasks, folder, options = request.tasks, request.folder, request.options
    first = next(iter(tasks.tasks.values())).command_line
    wanted = SubmissionRequest(
        kind,
        folder,
        len(tasks.tasks),
        options.flags,
        request.slots.count or 1,
        cluster,
        subject=lambda project: _subject(tasks, project.gauge.by, find_owner(options, folder)),
        command_line=first if kind == "run" else None,
    )

    def make() -> Sweep:
        sweep = make_list(request, notify)
        many = sweep["expected"]
        lines = "one command" if many == 1 else f"{many} command lines"
        notify(Notice(f"{_named(sweep)}: {lines}"))
        return sweep

    return submit_for(plan_submission(wanted, notify), make, cluster, notify)


def estimate_list(request: ListRequest, notify: Notify, sweep: Sweep | None = None) -> None:
    """How long it will take on this machine, where that is known; kept with the sweep."""
    if request.tasks.tasks:
        folder = Path.cwd()
        owner = find_owner(request.options, folder)
        subject = _subject(request.tasks, options_of_kind(folder), owner)
        estimate_here(subject, len(request.tasks.tasks), request.slots.count, notify, sweep)


def _subject(tasks: TaskList, by: Sequence[str], owner: Owner) -> Subject:
    from runyard.gauge.kinds import kind_of_line

    first = next(iter(tasks.tasks.values()))
    kind = kind_of_line(first.command_line, by)
    return Subject(kind, owner.project, owner.entity)


def left_by_log(tasks: TaskList, log: Path, *, failed_too: bool) -> TaskList:
    """The tasks that are to run, by what the job log says."""
    rows = read_job_log(log)
    for number, row in rows.items():
        task = tasks.tasks.get(number)
        if task is None or task.command_line != row.command_line.strip():
            there = f"has {task.command_line!r} there" if task else "has no such line"
            raise ConfigError(
                f"{log} is about something else: its task {number} is {row.command_line!r}, and "
                f"{tasks.source} {there}",
                mend="lines may be added at the end; else begin a new log with --joblog FILE",
            )
    done = {number for number, row in rows.items() if row.is_good or not failed_too}
    return tasks.only([number for number in tasks.tasks if number not in done])


def repeated(words: Sequence[str], seeds: Sequence[int]) -> list[list[str]]:
    """The command for each seed: where it says {seed}, or at its end."""
    if any(_SEED in word for word in words):
        return [[word.replace(_SEED, str(seed)) for word in words] for seed in seeds]
    return [[*words, "--seed", str(seed)] for seed in seeds]


def _named(sweep: Sweep) -> str:
    name = "" if sweep["name"] == sweep["id"] else f" ({sweep['name']})"
    return f"sweep {sweep['id']}{name}"
