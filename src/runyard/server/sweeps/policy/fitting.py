"""Whether a trial may begin in a job: by what is known of its sweep's programs. Pure.

A program that saves goes on in the next job, so it may begin in any. One that never saved begins
only where it can finish. As long as nothing is known, it is tried.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from runyard.server.sweeps.policy.lifecycle import DEFAULT_RETRIES

# late: not in what is left of this job. too-long: in no job of this length.
Refusal = Literal["late", "too-long"]

# As often as one trial may be cut off by its job's end without getting on.
_MOST_FRUITLESS = DEFAULT_RETRIES["time"]


@dataclass(frozen=True)
class Programs:
    """What the attempts of a sweep have shown so far; all times in seconds."""

    saves: bool = False
    """Some attempt left a checkpoint, or asked to go on later."""
    shortest_saving: float | None = None
    """The shortest attempt that left a checkpoint."""
    finished: int = 0
    finished_seconds: float = 0.0
    """How many attempts finished their trial, and their sum. Not all attempts of these trials: one
    that was begun anew took no longer because of what was cut off before."""
    shortest_finishing: float | None = None
    fruitless: int = 0
    """Attempts cut off by their job's end with nothing to show for it, since one had."""
    longest_fruitless: float = 0.0

    @property
    def typical(self) -> float | None:
        return self.finished_seconds / self.finished if self.finished else None


@dataclass(frozen=True)
class Room:
    """What an agent's job has room for: seconds before programs are told to save."""

    left: float
    whole: float
    """What was left when the agent asked for its first trial."""
    has_begun: bool = False
    """Whether the agent has begun trials in this job."""


def refusal(known: Programs, room: Room) -> Refusal | None:
    """Why no trial begins there; None: one may."""
    if _outlasts(known, room.whole):
        return "too-long"
    if room.left <= 0 or _outlasts(known, room.left):
        return "late"
    if not room.has_begun:
        return None
    # The end of a job: it is left unused where most would be cut off for nothing.
    return "late" if room.left < _usually_needed(known) else None


def _outlasts(known: Programs, seconds: float) -> bool:
    if known.saves:
        return False
    if known.shortest_finishing is not None and seconds < known.shortest_finishing:
        return True
    return known.fruitless >= _MOST_FRUITLESS and seconds <= known.longest_fruitless


def _usually_needed(known: Programs) -> float:
    if not known.saves:
        return known.typical or 0.0
    # An attempt may have been slow to start for once: one that was short and saved outweighs it.
    return min(known.longest_fruitless, known.shortest_saving or 0.0)


def explain(known: Programs, room: Room, sweep: str) -> str:
    mend = (
        "ask for more with --time, or have the program save its state in $RUNYARD_CHECKPOINT_DIR "
        f"and then type `runyard sweep --resume {sweep}`, to have it tried again"
    )
    job = f"a job like this leaves them {_seconds(room.whole)}"
    if known.shortest_finishing is not None and room.whole < known.shortest_finishing:
        return (
            f"its programs are too long for such jobs: {job}, none finished in less than "
            f"{_seconds(known.shortest_finishing)}, and none has saved a checkpoint; {mend}"
        )
    return (
        f"its programs are too long for such jobs: {job}, {known.fruitless} attempts in a row were "
        f"cut off after up to {_seconds(known.longest_fruitless)} without a checkpoint or new "
        f"rows, and none has finished; {mend}"
    )


def _seconds(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{max(0, whole)} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "m"), (rest if not hours else 0, "s"))
    return " ".join(f"{count}{unit}" for count, unit in parts if count)
