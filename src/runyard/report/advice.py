"""What to ask for the next time, and what that would have saved."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from runyard.client.jobs import Job
from runyard.client.sweeps import Effort
from runyard.reading.units import (
    duration,
    memory_text,
    round_memory,
    round_time,
    short_memory,
    short_time,
)
from runyard.report.efficiency import Use

CPU_MARGIN = 1.25
# And after a job that did not get through.
MORE_AFTER_FAILURE = 1.5
# A change that saves less than this share is not worth anybody's time.
WORTHWHILE = 0.2
_IDLE_GPU = 0.6
_MIB = 1 << 20


@dataclass(frozen=True)
class Margins:
    """What is asked for beyond what was used, as shares; of a GPU's memory, what stays free."""

    memory: float = 0.2
    time: float = 0.25
    gpu_memory: float = 0.1


DEFAULT = Margins()


@dataclass(frozen=True)
class Change:
    """An option that was not right. `saves` in core- and GPU-seconds, where it would have saved
    some; `is_needed`: without it the same would fail again."""

    option: str
    asked: str
    better: str
    why: str
    core_seconds: float = 0.0
    gpu_seconds: float = 0.0
    is_needed: bool = False

    @property
    def words(self) -> str:
        instead = f" instead of {self.asked}" if self.asked else ""
        return f"ask {self.option} {self.better}{instead}: {self.why}"

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "words": self.words}


def changes(jobs: Sequence[Job], uses: Sequence[Use], margins: Margins = DEFAULT) -> list[Change]:
    """For jobs that asked alike: what failed for want of something first, then what saves most."""
    begun = [one for one in uses if one.seconds]
    if not begun:
        return []
    found = [
        _memory(jobs, begun, margins),
        _time(jobs, begun, margins),
        _cpus(begun),
        *_gpus(begun, margins),
    ]
    told = [one for one in found if one is not None]
    return sorted(told, key=lambda one: (not one.is_needed, -one.gpu_seconds, -one.core_seconds))


def wishes(attempts: Sequence[Effort], *, now: float, margins: Margins = DEFAULT) -> list[Change]:
    """Where nothing was asked: what one such program would need of a cluster."""
    known = [one for one in attempts if one["usage"]]
    peaks = [one["usage"].get("memory_peak", 0) for one in known if one["usage"]]
    spans = [(one["ended_at"] or now) - one["started_at"] for one in attempts]
    found = []
    seconds = sum((one["ended_at"] or now) - one["started_at"] for one in known)
    used = sum(one["usage"].get("cpu_seconds", 0.0) for one in known if one["usage"])
    if used and seconds:
        cores = max(1, math.ceil(used / seconds * CPU_MARGIN - 0.05))
        found.append(Change("--cpus", "", str(cores), f"{_amount(used / seconds)} were busy"))
    if max(peaks, default=0):
        better = short_memory(round_memory(max(peaks) * (1 + margins.memory)))
        found.append(Change("--mem", "", better, f"the most was {memory_text(max(peaks))}"))
    if max(spans, default=0.0):
        better = short_time(round_time(max(spans) * (1 + margins.time)))
        found.append(Change("--time", "", better, f"the longest took {duration(max(spans))}"))
    return found


def _memory(jobs: Sequence[Job], uses: Sequence[Use], margins: Margins) -> Change | None:
    peak = max((one.memory_peak or 0 for one in uses), default=0)
    asked = max((one.memory_asked or 0 for one in uses), default=0)
    if not asked:
        return None
    if _ended(jobs, "OUT_OF_MEMORY"):
        more = round_memory(asked * MORE_AFTER_FAILURE)
        why = "Slurm ended it for want of memory"
        return Change("--mem", _as_asked(asked), short_memory(more), why, is_needed=True)
    better = round_memory(peak * (1 + margins.memory))
    if not peak or better * _MIB > (1 - WORTHWHILE) * asked:
        return None
    why = f"the most that was used is {memory_text(peak)}; a smaller job starts sooner"
    return Change("--mem", _as_asked(asked), short_memory(better), why)


def _time(jobs: Sequence[Job], uses: Sequence[Use], margins: Margins) -> Change | None:
    limit = max((one.limit or 0.0 for one in uses), default=0.0)
    longest = max((one.longest or 0.0 for one in uses), default=0.0)
    if not limit or not longest:
        return None
    if _ended(jobs, "TIMEOUT"):
        more = round_time(limit * MORE_AFTER_FAILURE)
        why = "Slurm cut it off at its limit; checkpoints let it go on instead"
        return Change("--time", short_time(limit), short_time(more), why, is_needed=True)
    better = round_time(longest * (1 + margins.time))
    is_open = any(job["ended_at"] is None for job in jobs)
    if is_open or better > (1 - WORTHWHILE) * limit:
        return None
    why = f"the longest took {duration(longest)}; a shorter job starts sooner"
    return Change("--time", short_time(limit), short_time(better), why)


def _cpus(uses: Sequence[Use]) -> Change | None:
    known = [one for one in uses if one.cores_busy is not None and one.asked.get("cpus")]
    if not known or any((one.asked.get("nodes") or 1) > 1 for one in known):
        return None
    asked = int(max(one.asked["cpus"] for one in known))
    # The mean over tasks, not the busiest one: a short task's start would speak for all.
    seconds = sum(one.seconds or 0.0 for one in known)
    busy = sum(one.cpu_used or 0.0 for one in known) / seconds
    fewest = max(one.at_once for one in known)
    better = max(1, fewest, math.ceil(busy * CPU_MARGIN - 0.05))
    if better > (1 - WORTHWHILE) * asked:
        return None
    why = f"{_amount(busy)} of {asked} cores were busy on average"
    if better == fewest > 1:
        why += f", and {fewest} programs ran at once"
    saved = (asked - better) * seconds
    return Change("--cpus", str(asked), str(better), why, core_seconds=saved)


def _gpus(uses: Sequence[Use], margins: Margins) -> list[Change | None]:
    known = [one for one in uses if one.gpu_held and one.gpus_touched is not None]
    if not known:
        return []
    asked = int(max(one.asked.get("gpus") or 0 for one in known))
    touched = max(one.gpus_touched or 0 for one in known)
    held = sum(one.gpu_held for one in known)
    if touched < asked:
        why = (
            "no program put anything on its GPU"
            if touched == 0
            else f"programs used {touched} of {asked}"
        )
        return [Change("--gpus", str(asked), str(touched), why,
                       gpu_seconds=held * (1 - touched / asked))]  # fmt: skip
    return [_packing(known, held, max(one.at_once for one in known) / asked, margins)]


def _packing(uses: Sequence[Use], held: float, sharing: float, margins: Margins) -> Change | None:
    """More programs on a GPU that is neither full nor busy."""
    totals = [one.vram_total for one in uses if one.vram_total]
    peak = max((one.vram_peak or 0 for one in uses), default=0)
    used = sum(one.gpu_used or 0.0 for one in uses)
    if not totals or not peak or not held or used / held > _IDLE_GPU:
        return None
    room = int(min(totals) * (1 - margins.gpu_memory) // peak)
    wanted = int(1 / max(used / held, 0.02) * max(1.0, sharing))
    better = min(room, wanted)
    if better < 2 or better <= sharing:
        return None
    why = (
        f"GPUs were {100 * used / held:.0f} % busy, and {better} such programs fit: "
        f"{memory_text(peak)} each of {memory_text(min(totals))}"
    )
    before = "" if sharing <= 1 else f"{sharing:.0f}"
    return Change("--per-gpu", before, str(better), why,
                  gpu_seconds=held * (1 - max(1.0, sharing) / better))  # fmt: skip


def _ended(jobs: Sequence[Job], state: str) -> bool:
    return any(job["states"].get(state) for job in jobs)


def _as_asked(count: int) -> str:
    return short_memory(round(count / _MIB))


def _amount(cores: float) -> str:
    return f"{cores:.1f}" if cores >= 0.1 else f"{cores:.2f}"


def alike(asked: Mapping[str, Any]) -> tuple[Any, ...]:
    """Jobs with the same answer asked for the same."""
    names = ("nodes", "tasks_per_node", "cpus", "memory", "time", "gpus", "gpu_type")
    return tuple(asked.get(name) for name in names)
