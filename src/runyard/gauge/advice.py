"""What measured figures mean for a job: what to ask for, and how many share which GPU. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runyard.node.devices.slot_shares import how_many_fit
from runyard.reading.units import round_memory, round_time, short_memory, short_time

if TYPE_CHECKING:
    from runyard.clusters.profile import Profile
    from runyard.config.request import Gauge
    from runyard.gauge.measured import Measured

_GB, _MIB = 10**9, 1 << 20
# If less than this share of a GPU is used, a smaller GPU may be enough.
_EMPTY = 0.25


@dataclass(frozen=True)
class Room:
    """How many copies of a program fit on one GPU of this kind; 0: not even one."""

    gpu: str
    memory_gb: float
    count: int
    is_slice: bool = False


@dataclass(frozen=True)
class Ask:
    """What to ask Slurm for, if `programs` run at a time. None: not known."""

    programs: int
    memory: int
    """MiB."""
    cpus: int
    seconds: float | None = None
    per_gpu: int | None = None
    chain: int | None = None
    """Number of jobs in a chain, if one job may not be long enough."""

    def options(self) -> str:
        """As a command line has them."""
        words = [] if self.seconds is None else [f"--time {short_time(self.seconds)}"]
        words += [f"--memory {short_memory(self.memory)}", f"--cpus {self.cpus}"]
        words += [f"--per-gpu {self.per_gpu}"] if (self.per_gpu or 1) > 1 else []
        words += [f"--chain {self.chain}"] if self.chain is not None else []
        return " ".join(words)


def rooms(profile: Profile, peak: int, margin: float) -> list[Room]:
    """For every kind of GPU whose memory the profile gives, the smallest first."""
    all_rooms = []
    for table, is_slice in ((profile.gpus.types, False), (profile.gpus.slices, True)):
        for name, model in table.items():
            if model.memory_gb is not None:
                count = room_on(round(model.memory_gb * _GB), peak, margin)
                all_rooms.append(Room(name, model.memory_gb, count, is_slice))
    return sorted(all_rooms, key=lambda room: (room.memory_gb, room.gpu))


def room_on(total: int, peak: int, margin: float) -> int:
    """How many fit on a GPU of `total` bytes; 0: not even one."""
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
    """The request for a job in which `programs` of them run at a time.

    `slow_down`: the time of a program beside the others, divided by its time alone. `longest`:
    the site's limit.
    """
    memory = round_memory(programs * measured.memory_peak * (1 + margins.memory_margin))
    # At least one CPU for each program; more if it keeps more busy.
    cpus = programs * max(1, math.ceil(measured.cpus - 0.25))
    seconds, chain = None, None
    if measured.whole_seconds is not None:
        longest_run = measured.whole_seconds * (1 + margins.time_margin)
        if measured.whole_between is not None:
            longest_run = max(longest_run, measured.whole_between[1])
        seconds = round_time(longest_run * slow_down)
        if longest is not None and seconds > longest:
            chain = math.ceil(seconds / longest)
            seconds = longest
    return Ask(programs, memory, cpus, seconds, per_gpu, chain)


def memory_at_the_end(measured: Measured) -> int | None:
    """If memory grows: the memory at the end of a whole run, at this pace."""
    if not measured.memory_growth or measured.whole_seconds is None:
        return None
    left = max(0.0, measured.whole_seconds - measured.seconds)
    return round(measured.memory_peak + measured.memory_growth * left)


def smaller_gpu(gpus: list[Room], used: str | None, programs: int, peak: int) -> Room | None:
    """A smaller GPU or a slice on which the same programs fit, if most of the used card stays
    empty."""
    now = next((room for room in gpus if room.gpu == used), None)
    if now is None or programs * peak > _EMPTY * now.memory_gb * _GB:
        return None
    return next(
        (room for room in gpus if room.memory_gb < now.memory_gb and room.count >= programs), None
    )
