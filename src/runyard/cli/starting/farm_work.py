"""A list of command lines at work on this machine: shown line by line, and logged."""

from __future__ import annotations

from pathlib import Path

from runyard.actions.agent_process import working_folder
from runyard.actions.job_log import JobLog, job_log_of
from runyard.actions.slots import Slots
from runyard.actions.tracking import ProjectOptions, agent_variables
from runyard.actions.watching.failures import is_list
from runyard.cli.output import say, show
from runyard.cli.starting.halting import Halt
from runyard.cli.starting.sweep_output import Output
from runyard.cli.starting.sweep_watch import NO_LIMITS, Follower, Limits, work
from runyard.client.sweeps import Sweep
from runyard.errors import UsageError
from runyard.home import locate

_STDOUT, _STDERR = 1, 2


def open_log(path: Path) -> JobLog:
    """The job log to write to, which nobody else writes to."""
    log = JobLog(path)
    if not log.is_ours:
        raise UsageError(
            f"another command writes to the job log {path}",
            mend="name another file with --joblog, or wait until that one has ended",
        )
    return log


def work_on_list(
    sweep: Sweep,
    options: ProjectOptions,
    *,
    slots: Slots,
    as_json: bool = False,
    quiet: bool = False,
    halt: Halt | None = None,
    log: JobLog | None = None,
    limits: Limits = NO_LIMITS,
) -> int:
    """Until nothing is left to run; the number of tasks that failed."""
    variables = agent_variables(options, Path(sweep["folder"] or "."), show)
    path = job_log_of(sweep, working_folder(sweep["folder"]))
    if log is None:
        log = JobLog(path)
        if not log.is_ours:
            say(f"the job log {path} is written by another command, which logs these tasks too")
    followers: list[Follower] = [log, *([halt] if halt is not None else [])]
    code = work(
        locate(),
        sweep,
        slots=slots,
        variables=variables,
        as_json=as_json,
        show=None if quiet else Output(_STDERR if as_json else _STDOUT),
        followers=followers,
        limits=limits,
    )
    if log.is_ours:
        say(f"job log: {path}")
    return code


def work_on(
    sweep: Sweep,
    options: ProjectOptions,
    *,
    slots: Slots,
    as_json: bool,
    limits: Limits = NO_LIMITS,
) -> int:
    """Any sweep, in the way that its kind is worked on."""
    slots = slots.of_sweep(sweep)
    if is_list(sweep):
        return work_on_list(sweep, options, slots=slots, as_json=as_json, limits=limits)
    variables = agent_variables(options, Path(sweep["folder"] or "."), show)
    return work(locate(), sweep, slots=slots, variables=variables, as_json=as_json, limits=limits)
