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
from runyard.actions.sweeping.job_log import read_job_log, refuse_used_log
from runyard.actions.sweeping.slots import Slots
from runyard.actions.tracking import ProjectOptions, agent_variables
from runyard.config.task_files import STANDARD_INPUT, is_redirected
from runyard.errors import ConfigError, UsageError
from runyard.shapes.sweeps import Sweep

if TYPE_CHECKING:
    from runyard.config.task_list import TaskList

_SEED = "{seed}"
_FEW_SEEDS = 3


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
    warm: Sequence[str] = ()
    """Modules that are imported once, for all programs of Python."""


def read_tasks(file: str | None, grid: str | None, notify: Notify) -> TaskList:
    """The lines of a file, or of standard input where it is redirected, or every combination of a
    line with braces."""
    from runyard.config.task_list import read_task_file, tasks_of_grid

    if file is None and grid is None and is_redirected():
        file = STANDARD_INPUT
    if file is not None and grid is None:
        tasks = read_task_file(file)
    elif file is None and grid is not None:
        tasks = tasks_of_grid(grid)
    else:
        raise UsageError(
            "runyard farm takes a file of command lines, or --grid with one line",
            mend="runyard farm tasks.txt   or:  runyard farm --grid 'python t.py --lr {0.1,0.01}'",
        )
    if 0 < tasks.seeds <= _FEW_SEEDS:
        few = f"{tasks.seeds} seeds tell little about the spread between seeds"
        notify(Notice(f"{few}: five are better"))
    return tasks


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
        warm=list(request.warm) or None,
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


def tasks_left(
    tasks: TaskList, log: Path | None, *, resumes: bool, failed_too: bool, writes: bool
) -> TaskList:
    """The tasks that are to run, by what the job log says; a log that is there is not written to
    without being resumed."""
    if not (resumes or failed_too):
        if log is not None and writes:
            refuse_used_log(log)
        return tasks
    if log is None:
        raise UsageError(
            "--resume and --resume-failed need to know the job log",
            mend="--joblog FILE names it; `runyard retry SWEEP` does without",
        )
    return left_by_log(tasks, log, failed_too=failed_too)


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
