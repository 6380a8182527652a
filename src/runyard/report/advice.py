"""What to ask for the next time, and what that would have saved."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from runyard.reading.units import (
    duration,
    memory_text,
    round_memory,
    round_time,
    short_memory,
    short_time,
)
from runyard.report.efficiency import Use
from runyard.shapes.jobs import Job
from runyard.shapes.sweeps import Effort

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
    begun = [use for use in uses if use.seconds]
    if not begun:
        return []
    candidates = [
        _memory(jobs, begun, margins),
        _time(jobs, begun, margins),
        _cpus(begun),
        *_gpus(begun, margins),
    ]
    needed = [change for change in candidates if change is not None]
    return sorted(
        needed, key=lambda change: (not change.is_needed, -change.gpu_seconds, -change.core_seconds)
    )


def wishes(attempts: Sequence[Effort], *, now: float, margins: Margins = DEFAULT) -> list[Change]:
    """Where nothing was asked: what one such program would need of a cluster."""
    known = [attempt for attempt in attempts if attempt["usage"]]
    peaks = [attempt["usage"].get("memory_peak", 0) for attempt in known if attempt["usage"]]
    spans = [(attempt["ended_at"] or now) - attempt["started_at"] for attempt in attempts]
    changes_wished = []
    seconds = sum((attempt["ended_at"] or now) - attempt["started_at"] for attempt in known)
    used = sum(attempt["usage"].get("cpu_seconds", 0.0) for attempt in known if attempt["usage"])
    if used and seconds:
        cores = max(1, math.ceil(used / seconds * CPU_MARGIN - 0.05))
        changes_wished.append(
            Change("--cpus", "", str(cores), f"{_amount(used / seconds)} were busy")
        )
    if max(peaks, default=0):
        better = short_memory(round_memory(max(peaks) * (1 + margins.memory)))
        changes_wished.append(
            Change("--memory", "", better, f"the most was {memory_text(max(peaks))}")
        )
    if max(spans, default=0.0):
        better = short_time(round_time(max(spans) * (1 + margins.time)))
        changes_wished.append(
            Change("--time", "", better, f"the longest took {duration(max(spans))}")
        )
    return changes_wished


def _memory(jobs: Sequence[Job], uses: Sequence[Use], margins: Margins) -> Change | None:
    peak = max((use.memory_peak or 0 for use in uses), default=0)
    requested = max((use.memory_asked or 0 for use in uses), default=0)
    if not requested:
        return None
    if _ended(jobs, "OUT_OF_MEMORY"):
        more = round_memory(requested * MORE_AFTER_FAILURE)
        why = "Slurm ended it for want of memory"
        return Change("--memory", _as_asked(requested), short_memory(more), why, is_needed=True)
    better = round_memory(peak * (1 + margins.memory))
    if not peak or better * _MIB > (1 - WORTHWHILE) * requested:
        return None
    why = f"the most that was used is {memory_text(peak)}; a smaller job starts sooner"
    return Change("--memory", _as_asked(requested), short_memory(better), why)


def _time(jobs: Sequence[Job], uses: Sequence[Use], margins: Margins) -> Change | None:
    limit = max((use.limit or 0.0 for use in uses), default=0.0)
    longest = max((use.longest or 0.0 for use in uses), default=0.0)
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
    known = [use for use in uses if use.cores_busy is not None and use.asked.get("cpus")]
    if not known or any((use.asked.get("nodes") or 1) > 1 for use in known):
        return None
    requested = int(max(use.asked["cpus"] for use in known))
    # The mean over tasks, not the busiest one: a short task's start would speak for all.
    seconds = sum(use.seconds or 0.0 for use in known)
    busy = sum(use.cpu_used or 0.0 for use in known) / seconds
    fewest = max(use.at_once for use in known)
    better = max(1, fewest, math.ceil(busy * CPU_MARGIN - 0.05))
    if better > (1 - WORTHWHILE) * requested:
        return None
    why = f"{_amount(busy)} of {requested} cores were busy on average"
    if better == fewest > 1:
        why += f", and {fewest} programs ran at once"
    saved = (requested - better) * seconds
    return Change("--cpus", str(requested), str(better), why, core_seconds=saved)


def _gpus(uses: Sequence[Use], margins: Margins) -> list[Change | None]:
    known = [use for use in uses if use.gpu_held and use.gpus_touched is not None]
    if not known:
        return []
    requested = int(max(use.asked.get("gpus") or 0 for use in known))
    touched = max(use.gpus_touched or 0 for use in known)
    held = sum(use.gpu_held for use in known)
    if touched < requested:
        why = (
            "no program put anything on its GPU"
            if touched == 0
            else f"programs used {touched} of {requested}"
        )
        return [Change("--gpus", str(requested), str(touched), why,
                       gpu_seconds=held * (1 - touched / requested))]  # fmt: skip
    return [_packing(known, held, max(use.at_once for use in known) / requested, margins)]


def _packing(uses: Sequence[Use], held: float, sharing: float, margins: Margins) -> Change | None:
    """More programs on a GPU that is neither full nor busy."""
    totals = [use.vram_total for use in uses if use.vram_total]
    peak = max((use.vram_peak or 0 for use in uses), default=0)
    used = sum(use.gpu_used or 0.0 for use in uses)
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
