"""A list of command lines at work on this machine: shown line by line, and logged."""

from __future__ import annotations

from pathlib import Path

from runyard.actions.watching.failures import is_list
from runyard.cli.halting import Halt
from runyard.cli.job_log import JobLog, job_log_of
from runyard.cli.output import say
from runyard.cli.slots import Slots
from runyard.cli.sweep_output import Output
from runyard.cli.sweep_watch import Follower, work, working_folder
from runyard.client.sweeps import Sweep
from runyard.errors import UsageError
from runyard.home import Home

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
    home: Home,
    sweep: Sweep,
    *,
    slots: Slots,
    count: int | None = None,
    as_json: bool = False,
    quiet: bool = False,
    halt: Halt | None = None,
    log: JobLog | None = None,
    seconds: float | None = None,
    grace: float | None = None,
) -> int:
    """Until nothing is left to run; the number of tasks that failed."""
    path = job_log_of(sweep, working_folder(sweep["folder"]))
    if log is None:
        log = JobLog(path)
        if not log.is_ours:
            say(f"the job log {path} is written by another command, which logs these tasks too")
    followers: list[Follower] = [log, *([halt] if halt is not None else [])]
    code = work(
        home,
        sweep,
        folder=sweep["folder"],
        slots=slots,
        count=count,
        as_json=as_json,
        show=None if quiet else Output(_STDERR if as_json else _STDOUT),
        followers=followers,
        seconds=seconds,
        grace=grace,
    )
    if log.is_ours:
        say(f"job log: {path}")
    return code


def work_on(
    home: Home,
    sweep: Sweep,
    *,
    slots: Slots,
    count: int | None = None,
    as_json: bool,
    seconds: float | None = None,
    grace: float | None = None,
) -> int:
    """Any sweep, in the way that its kind is worked on."""
    if is_list(sweep):
        return work_on_list(
            home,
            sweep,
            slots=slots,
            count=count,
            as_json=as_json,
            seconds=seconds,
            grace=grace,
        )
    return work(
        home,
        sweep,
        folder=sweep["folder"],
        slots=slots,
        count=count,
        as_json=as_json,
        seconds=seconds,
        grace=grace,
    )
