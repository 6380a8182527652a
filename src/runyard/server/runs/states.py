"""What becomes of a run: pure functions from what was heard to its state.

The words are W&B's: pending, running, finished, failed, crashed, killed, preempting, preempted.
"""

from __future__ import annotations

import signal

from runyard.vocabulary import ENDED_RUN_STATES as ENDED
from runyard.vocabulary import RUN_STATES as ALL
from runyard.vocabulary import RUNNING_STATES as ALIVE

__all__ = ["ALIVE", "ALL", "ENDED"]

# Clients make themselves heard every 30 s; so does the process beside a program.
SILENT_SECONDS = 120.0

_ASKED_TO_END = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT}


def after_exit(exit_code: int, *, preempting: bool) -> str:
    """The state of a run whose program ended; `exit_code` is negative for a signal."""
    if exit_code == 0:
        return "finished"
    if preempting:
        return "preempted"
    if _signal_of(exit_code) in _ASKED_TO_END:
        return "killed"
    return "crashed" if exit_code < 0 else "failed"


def after_completion(exit_code: int, *, preempting: bool) -> str:
    if exit_code == 0:
        return "finished"
    return "preempted" if preempting else "failed"


def after_silence(*, preempting: bool) -> str:
    return "preempted" if preempting else "crashed"


def shell_code(exit_code: int) -> int:
    """An exit code as shells show it: 128 and the signal's number for a death by signal."""
    return 128 - exit_code if exit_code < 0 else exit_code


def cause_of(exit_code: int) -> str:
    signal_ = _signal_of(exit_code)
    if signal_ is not None:
        return signal_.name
    return "finished" if exit_code == 0 else f"exit code {exit_code}"


def _signal_of(exit_code: int) -> signal.Signals | None:
    # A shell between us and the program turns a signal into 128 and its number.
    number = -exit_code if exit_code < 0 else exit_code - 128
    try:
        return signal.Signals(number) if exit_code < 0 or exit_code > 128 else None
    except ValueError:
        return None
