"""Slurm's states of a job, and its reasons for letting one wait, in words that people understand.

Each is one table. What is in neither is passed on as Slurm said it: the next release has new words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

Phase = Literal["waiting", "running", "ended", "unknown"]


@dataclass(frozen=True)
class State:
    """A state by Slurm's long name; `says` is ours. `word` is what Slurm said, where it is new."""

    name: str
    phase: Phase
    says: str
    word: str = ""

    @property
    def is_open(self) -> bool:
        """Whether something may still come of it."""
        return self.phase in ("waiting", "running")

    @property
    def is_bad(self) -> bool:
        return self.phase == "ended" and self.name != "COMPLETED"


# Long name: (compact form, phase, in plain words). Those in _FLAGS stand beside a state of the job
# (Slurm writes RUNNING,COMPLETING or just the flag) and say more than it.
_TABLE: Mapping[str, tuple[str, Phase, str]] = {
    "PENDING": ("PD", "waiting", "waiting"),
    "CONFIGURING": ("CF", "waiting", "its nodes are starting"),
    "POWER_UP_NODE": ("PO", "waiting", "its nodes are starting"),
    "REQUEUED": ("RQ", "waiting", "back in the queue"),
    "REQUEUE_FED": ("RF", "waiting", "back in the queue"),
    "REQUEUE_HOLD": ("RH", "waiting", "back in the queue, and held"),
    "RESV_DEL_HOLD": ("RD", "waiting", "held: its reservation was deleted"),
    "SPECIAL_EXIT": ("SE", "waiting", "back in the queue, and held"),
    "RUNNING": ("R", "running", "running"),
    "SUSPENDED": ("S", "running", "suspended"),
    "STOPPED": ("ST", "running", "stopped by a signal"),
    "SIGNALING": ("SI", "running", "running"),
    "RESIZING": ("RS", "running", "running, and changing its size"),
    "EXPEDITING": ("EX", "running", "running"),
    "STAGE_OUT": ("SO", "running", "copying its files out"),
    "COMPLETING": ("CG", "running", "ending"),
    "UPDATE_DB": ("UD", "running", "ending"),
    "COMPLETED": ("CD", "ended", "done"),
    "FAILED": ("F", "ended", "failed"),
    "CANCELLED": ("CA", "ended", "cancelled"),
    "TIMEOUT": ("TO", "ended", "out of time"),
    "OUT_OF_MEMORY": ("OOM", "ended", "out of memory"),
    "NODE_FAIL": ("NF", "ended", "its node failed"),
    "BOOT_FAIL": ("BF", "ended", "its node did not start"),
    "LAUNCH_FAILED": ("LF", "ended", "could not be started"),
    "RECONFIG_FAIL": ("RC", "ended", "its node could not be set up"),
    "PREEMPTED": ("PR", "ended", "pushed out by a more urgent job"),
    "DEADLINE": ("DL", "ended", "past its deadline"),
    "REVOKED": ("RV", "ended", "runs on another cluster"),
}
_FLAGS = (
    "COMPLETING", "STAGE_OUT", "CONFIGURING", "POWER_UP_NODE", "REQUEUE_HOLD", "SPECIAL_EXIT",
    "RESV_DEL_HOLD", "REQUEUED", "REQUEUE_FED", "STOPPED", "RESIZING", "SIGNALING", "UPDATE_DB",
    "LAUNCH_FAILED", "RECONFIG_FAIL", "REVOKED", "EXPEDITING",
)  # fmt: skip
_COMPACT = {compact: name for name, (compact, _, _) in _TABLE.items()}
# As other releases and commands write them.
_ALSO = {
    "CANCELED": "CANCELLED",
    "NODE_FAILED": "NODE_FAIL",
    "OUT_OF_ME": "OUT_OF_MEMORY",
    "OOM_KILL": "OUT_OF_MEMORY",
    "TIMELIMIT": "TIMEOUT",
}
UNKNOWN = State("UNKNOWN", "unknown", "unknown to Slurm")


def read_state(text: str) -> State:
    """A state as any command of Slurm's writes it: R, RUNNING, RUNNING+, CANCELLED by 1000."""
    # Cut to its column's width, sacct ends a word with a plus sign.
    words = re.split(r"[,+| ]+", text.strip().partition(" by ")[0].upper())
    names = [name for word in words if (name := _name_of(word)) is not None]
    if not names:
        said = text.strip()[:50]
        return State("UNKNOWN", "unknown", f"{said} (Slurm's word)", said) if said else UNKNOWN
    flags = [name for name in names if name in _FLAGS]
    name = flags[0] if flags else names[0]
    return State(name, *_TABLE[name][1:])


def states_of(counts: Mapping[str, int]) -> list[tuple[State, int]]:
    """Counts by state, as they are told: what runs, what waits, what has ended."""
    order = ("running", "waiting", "ended", "unknown")
    found = [(read_state(name), count) for name, count in counts.items() if count]
    return sorted(found, key=lambda one: (order.index(one[0].phase), one[0].is_bad, one[0].name))


def counted(states: Iterable[str]) -> dict[str, int]:
    """How many of these are in which state, by long name."""
    found: dict[str, int] = {}
    for text in states:
        name = read_state(text).name
        found[name] = found.get(name, 0) + 1
    return found


def states_text(counts: Mapping[str, int]) -> str:
    """5 running, 20 waiting, 5 done."""
    summed: dict[str, int] = {}
    for state, count in states_of(counts):
        summed[state.says] = summed.get(state.says, 0) + count
    return ", ".join(f"{count} {says}" for says, count in summed.items())


def _name_of(word: str) -> str | None:
    if word in _TABLE:
        return word
    if word in _COMPACT:
        return _COMPACT[word]
    if word in _ALSO:
        return _ALSO[word]
    # A column may be too narrow for a long name; four letters mean one state only.
    longer = [name for name in _TABLE if len(word) >= 4 and name.startswith(word)]
    return longer[0] if len(longer) == 1 else None
