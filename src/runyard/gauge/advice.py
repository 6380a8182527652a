"""What measured figures mean for a job: what to ask for, and how many share which GPU. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runyard.node.devices.slot_shares import how_many_fit
from runyard.reading.units import round_memory, round_time

if TYPE_CHECKING:
    from runyard.clusters.profile import Profile
    from runyard.config.request import Gauge
    from runyard.gauge.measured import Measured

_GB, _MIB = 10**9, 1 << 20
# A GPU of which less than this is used may be larger than it has to be.
_EMPTY = 0.25


@dataclass(frozen=True)
class Room:
    """How many of a program fit one GPU of a kind; 0: not even one."""

    gpu: str
    memory_gb: float
    count: int
    is_slice: bool = False


@dataclass(frozen=True)
class Ask:
    """What to ask Slurm for, for so many programs at a time. None: it is not known."""

    programs: int
    memory: int
    """MiB."""
    cpus: int
    seconds: float | None = None
    per_gpu: int | None = None
    chain: int | None = None
    """Jobs that follow one another, where one may not be so long."""


def rooms(profile: Profile, peak: int, margin: float) -> list[Room]:
    """Of every kind of GPU whose memory the profile tells, the smallest first."""
    found = []
    for table, is_slice in ((profile.gpus.types, False), (profile.gpus.slices, True)):
        for name, model in table.items():
            if model.memory_gb is not None:
                count = room_on(round(model.memory_gb * _GB), peak, margin)
                found.append(Room(name, model.memory_gb, count, is_slice))
    return sorted(found, key=lambda one: (one.memory_gb, one.gpu))


def room_on(total: int, peak: int, margin: float) -> int:
    """How many fit a GPU of so many bytes; 0: not even one."""
    return 0 if peak > total else how_many_fit(total, peak, 1 - margin)


def ask_for(
    measured: Measured,
    margins: Gauge,
    *,
    programs: int = 1,
    per_gpu: int | None = None,
    slow_down: float = 1.0,
    longest: float | None = None,
) -> Ask:
    """The request for a job in which so many of them run at a time.

    `slow_down`: how many times as long each takes beside the others. `longest`: the site's limit.
    """
    memory = round_memory(programs * measured.memory_peak * (1 + margins.memory_margin))
    # One for each, never less; what it keeps busy may be more.
    cpus = programs * max(1, math.ceil(measured.cpus - 0.25))
    seconds, chain = None, None
    if measured.whole_seconds is not None:
        seconds = round_time(measured.whole_seconds * slow_down * (1 + margins.time_margin))
        if longest is not None and seconds > longest:
            chain = math.ceil(seconds / longest)
            seconds = longest
    return Ask(programs, memory, cpus, seconds, per_gpu, chain)


def memory_at_the_end(measured: Measured) -> int | None:
    """Where memory grows: what the program would hold at the end of a whole run, at this pace."""
    if not measured.memory_growth or measured.whole_seconds is None:
        return None
    left = max(0.0, measured.whole_seconds - measured.seconds)
    return round(measured.memory_peak + measured.memory_growth * left)


def smaller_gpu(found: list[Room], used: str | None, programs: int, peak: int) -> Room | None:
    """A smaller GPU, or a slice of one, on which the same programs fit: where most of the card
    that is used stays empty."""
    now = next((one for one in found if one.gpu == used), None)
    if now is None or programs * peak > _EMPTY * now.memory_gb * _GB:
        return None
    return next(
        (one for one in found if one.memory_gb < now.memory_gb and one.count >= programs), None
    )
