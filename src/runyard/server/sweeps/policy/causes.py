"""Why an attempt ended, in a word; every cause stands in one table."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Literal

from runyard.save_protocol import GO_ON
from runyard.search.options import RETRIES

Follow = Literal["final", "head", "tail"]


@dataclass(frozen=True)
class Cause:
    """What follows an attempt's end, and whether it uses up one of the trial's tries."""

    follow: Follow
    # Where it is final: the trial's state.
    state: str = "waiting"
    # Under which name of `retries` it is counted; None: it may happen as often as it likes.
    counted_as: str | None = None
    # Not counted where the run has more steps than at the last cut.
    forgiven_by_progress: bool = False
    text: str = ""


CAUSES: dict[str, Cause] = {
    "finished": Cause("final", "finished", text="finished"),
    "stopped": Cause("final", "stopped", text="stopped"),
    "canceled": Cause("final", "canceled", text="canceled"),
    "paused": Cause("final", "paused", text="paused"),
    "go-on": Cause("head", text="asked to go on later"),
    "preempted": Cause("head", text="preempted"),
    "time": Cause(
        "head", counted_as="time", forgiven_by_progress=True, text="cut off by its time limit"
    ),
    "node": Cause(
        "head", counted_as="node", forgiven_by_progress=True, text="lost with its node or agent"
    ),
    "cut": Cause(
        "head",
        counted_as="node",
        forgiven_by_progress=True,
        text="ended by a signal after a checkpoint",
    ),
    # On a GPU whose programs find out how many they may be: the next time there are fewer.
    "crowded": Cause("head", text="out of memory beside others on its GPU"),
    "memory": Cause("tail", counted_as="memory", text="out of memory"),
    # Seen by the agent beside it: the node is there, and so the next time may end the same way.
    "killed": Cause(
        "tail", counted_as="killed", text="killed by signal 9: out of memory, or by somebody's hand"
    ),
    "program": Cause("tail", counted_as="program", text="the program failed"),
    "nan": Cause("tail", counted_as="program", text="a value became NaN or infinite"),
    "signal": Cause("tail", counted_as="program", text="ended by a signal"),
}

# How often a trial may be cut off without progress where the sweep file says nothing.
DEFAULT_RETRIES = {**RETRIES, "killed": 2, "time": 5}


def cause_of_exit(exit_code: int, *, preempting: bool = False) -> str:
    """The cause, where only an exit code tells of it; negative for a signal."""
    if exit_code == 0:
        return "finished"
    if exit_code == GO_ON:
        return "go-on"
    if preempting:
        return "preempted"
    # A shell between us and the program turns a signal into 128 and its number.
    number = -exit_code if exit_code < 0 else exit_code - 128
    if number == signal.SIGKILL:
        return "node"  # Nobody says such a thing of itself: the kernel, or who tidied up.
    is_signal = exit_code < 0 or number in signal.valid_signals()
    return "signal" if is_signal else "program"
