"""The states of a job, one table: what is stored and shown, whichever scheduler has the job.

The names are Slurm's long ones, as the server keeps them; another scheduler says which of these a
state of its own is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Phase = Literal["waiting", "running", "ended", "unknown"]


@dataclass(frozen=True)
class State:
    """A state by its name; `says` is in plain words. `word`: what the scheduler said, if new."""

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


# Name: phase, in plain words.
STATES: Mapping[str, tuple[Phase, str]] = {
    "PENDING": ("waiting", "waiting"),
    "CONFIGURING": ("waiting", "its nodes are starting"),
    "POWER_UP_NODE": ("waiting", "its nodes are starting"),
    "REQUEUED": ("waiting", "back in the queue"),
    "REQUEUE_FED": ("waiting", "back in the queue"),
    "REQUEUE_HOLD": ("waiting", "back in the queue, and held"),
    "RESV_DEL_HOLD": ("waiting", "held: its reservation was deleted"),
    "SPECIAL_EXIT": ("waiting", "back in the queue, and held"),
    "RUNNING": ("running", "running"),
    "SUSPENDED": ("running", "suspended"),
    "STOPPED": ("running", "stopped by a signal"),
    "SIGNALING": ("running", "running"),
    "RESIZING": ("running", "running, and changing its size"),
    "EXPEDITING": ("running", "running"),
    "STAGE_OUT": ("running", "copying its files out"),
    "COMPLETING": ("running", "ending"),
    "UPDATE_DB": ("running", "ending"),
    "COMPLETED": ("ended", "done"),
    "FAILED": ("ended", "failed"),
    "CANCELLED": ("ended", "cancelled"),
    "TIMEOUT": ("ended", "out of time"),
    "OUT_OF_MEMORY": ("ended", "out of memory"),
    "NODE_FAIL": ("ended", "its node failed"),
    "BOOT_FAIL": ("ended", "its node did not start"),
    "LAUNCH_FAILED": ("ended", "could not be started"),
    "RECONFIG_FAIL": ("ended", "its node could not be set up"),
    "PREEMPTED": ("ended", "pushed out by a more urgent job"),
    "DEADLINE": ("ended", "past its deadline"),
    "REVOKED": ("ended", "runs on another cluster"),
}
UNKNOWN = State("UNKNOWN", "unknown", "unknown to the scheduler")


def state_named(name: str) -> State:
    """The state of this name; a name that is not in the table is a new word, and is quoted."""
    if name in STATES:
        return State(name, *STATES[name])
    word = name.strip()[:50]
    return State("UNKNOWN", "unknown", f"{word} (the scheduler's word)", word) if word else UNKNOWN


def states_of(counts: Mapping[str, int]) -> list[tuple[State, int]]:
    """Counts by state, as they are told: what runs, what waits, what has ended."""
    order = ("running", "waiting", "ended", "unknown")
    states = [(state_named(name), count) for name, count in counts.items() if count]
    return sorted(
        states, key=lambda pair: (order.index(pair[0].phase), pair[0].is_bad, pair[0].name)
    )


def states_text(counts: Mapping[str, int]) -> str:
    """5 running, 20 waiting, 5 done."""
    summed: dict[str, int] = {}
    for state, count in states_of(counts):
        summed[state.says] = summed.get(state.says, 0) + count
    return ", ".join(f"{count} {says}" for says, count in summed.items())
