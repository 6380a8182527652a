"""Grid Engine's states in the words of `schedulers/states.py`: letters of the queue, exit codes."""

from __future__ import annotations

from runyard.schedulers.jobs import Reason
from runyard.schedulers.states import State, state_named

# The first row with a letter of the state decides: `dr` is being deleted, `hRwq` waits again.
_LETTERS = (
    ("E", "SPECIAL_EXIT"),  # Could not be started; waits until somebody clears the error.
    ("d", "COMPLETING"),
    ("sST", "SUSPENDED"),
    ("rt", "RUNNING"),
    ("R", "REQUEUED"),
    ("qwh", "PENDING"),
)
# `failed` of an accounting record (sge_status(5)), where it is not a failure of the job's own.
_RESCHEDULED = frozenset({24, 25})
_NODE_FAILED = frozenset({18, 19, 20, 21})
_OVER_LIMIT = 37
_AFTER_THE_JOB = 100
_APPLICATION_ERROR = 30
_RAN = frozenset({0, 12, 13, 14, 15, 16, _APPLICATION_ERROR})
_SIGNAL = 128
_REASONS = {
    "Dependency": ("it waits for another job to end", ""),
    "Resources": ("it waits until enough is free", ""),
    "JobError": (
        "it could not be started",
        "`qstat -j JOB` says why; `qmod -cj JOB` lets it try again",
    ),
}


def read_letters(letters: str) -> State:
    """The state of a job in the queue: qw, hqw, r, dr, Eqw."""
    for row, name in _LETTERS:
        if set(row) & set(letters):
            return state_named(name)
    return state_named(letters)


def read_reason(word: str | None) -> Reason | None:
    """Why a job waits: a word of `queue.Row`, or the text that this made of one."""
    known = (word or "").partition(":")[0]
    if known in _REASONS:
        return Reason(known, *_REASONS[known])
    return Reason(word, "Grid Engine says no more than that") if word else None


def is_rescheduled(failed: int) -> bool:
    """Whether the record is of a try, and the job went back to the queue."""
    return failed in _RESCHEDULED


def ended_state(failed: int, exit_status: int, *, over_time: bool, over_memory: bool) -> State:
    """How a job ended, by its accounting record.

    A job that Grid Engine kills for its owner (`qdel`) and one that it kills at a limit leave the
    same record: what it used, against what it asked for, tells them apart.
    """
    if failed in _RAN:
        name = "COMPLETED" if exit_status == 0 and failed != _APPLICATION_ERROR else "FAILED"
    elif failed == _OVER_LIMIT or (failed == _AFTER_THE_JOB and over_time):
        name = "TIMEOUT"
    elif failed == _AFTER_THE_JOB and over_memory:
        name = "OUT_OF_MEMORY"
    elif failed == _AFTER_THE_JOB:
        name = "CANCELLED" if exit_status > _SIGNAL else "NODE_FAIL"
    elif failed in _NODE_FAILED:
        name = "NODE_FAIL"
    else:
        name = "LAUNCH_FAILED"
    return state_named(name)
