"""Samples of a program that runs outside of any sweep, summed up in figures. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from runyard.gauge.steps import Mark
from runyard.train.pace import regular_intervals, seconds_per_step
from runyard.train.ranges import range_of

# Memory has levelled out if it grew by no more than this share in the last third of the time.
_SLACK = 0.02
# Less growth than this is not a leak.
_LEAST_GROWTH = 16 << 20
_FEWEST_LOOKS = 6
ENOUGH_MARKS = 10
_FEW_MARKS = 4


@dataclass(frozen=True)
class Look:
    """One sample of a program and its children: memory now, and what they have used so far."""

    at: float
    memory: int
    memory_peak: int
    cpu_seconds: float
    read_bytes: int = 0
    written_bytes: int = 0
    vram: Mapping[str, int] = field(default_factory=dict)
    gpu_use: float | None = None


@dataclass(frozen=True)
class Measured:
    """The figures of one program. Bytes, seconds, shares of one."""

    seconds: float
    """How long it was measured."""
    exit_code: int | None = None
    """None: runyard ended it when enough was known."""
    memory_peak: int = 0
    memory_growth: float = 0.0
    """Bytes per second by which host memory still grew at the end; 0: it has levelled out."""
    is_level: bool = False
    """Whether host and GPU memory have both levelled out."""
    vram_peaks: Mapping[str, int] = field(default_factory=dict)
    """By GPU."""
    vram_is_of_card: bool = False
    """Whether the driver does not say whose memory it is: then this is the growth of the card."""
    gpu_use: float | None = None
    cpus: float = 0.0
    """How many it kept busy on average."""
    read_bytes: int = 0
    written_bytes: int = 0
    step: int = 0
    total: int | None = None
    seconds_per_step: float | None = None
    warm_up: float | None = None
    """Seconds until the first logged step."""
    whole_seconds: float | None = None
    """Of a whole run: measured or estimated."""
    whole_between: tuple[float, float] | None = None
    """Estimated: at least and at most."""

    @property
    def vram_peak(self) -> int:
        """On the GPU where it needs most."""
        return max(self.vram_peaks.values(), default=0)

    @property
    def steps_per_second(self) -> float | None:
        return 1 / self.seconds_per_step if self.seconds_per_step else None

    def to_json(self) -> dict[str, Any]:
        """For the server and for scripts."""
        figures: dict[str, Any] = {
            "seconds": round(self.seconds, 1),
            "exit_code": self.exit_code,
            "memory_peak": self.memory_peak,
            "memory_growth": round(self.memory_growth),
            "is_level": self.is_level,
            "cpus": round(self.cpus, 2),
            "read_bytes": self.read_bytes,
            "written_bytes": self.written_bytes,
            "step": self.step,
            "total": self.total,
            "steps_per_second": _short(self.steps_per_second),
            "warm_up": None if self.warm_up is None else round(self.warm_up, 2),
            "whole_seconds": _short(self.whole_seconds),
        }
        if self.whole_between is not None:
            figures["whole_between"] = [_short(seconds) for seconds in self.whole_between]
        if self.vram_peaks:
            figures |= {
                "vram_peak": self.vram_peak,
                "vram_peaks": dict(self.vram_peaks),
                "vram_is_of_card": self.vram_is_of_card,
                "gpu_use": None if self.gpu_use is None else round(self.gpu_use, 3),
            }
        return figures


def from_json(record: Mapping[str, Any]) -> Measured:
    """The inverse of `to_json`."""
    rate = record.get("steps_per_second")
    plain = (
        "seconds", "exit_code", "memory_peak", "memory_growth", "is_level", "cpus", "read_bytes",
        "written_bytes", "step", "total", "warm_up", "whole_seconds", "vram_peaks",
        "vram_is_of_card", "gpu_use",
    )  # fmt: skip
    known = {name: record[name] for name in plain if name in record}
    between = tuple(record["whole_between"]) if record.get("whole_between") else None
    return Measured(**known, seconds_per_step=1 / rate if rate else None, whole_between=between)


def worst(programs: Sequence[Measured]) -> Measured:
    """The worst of each figure over programs that ran together."""
    first = programs[0]
    whole = [program.whole_seconds for program in programs]
    paces = [program.seconds_per_step for program in programs if program.seconds_per_step]
    uses = [program.gpu_use for program in programs if program.gpu_use is not None]
    codes = [program.exit_code for program in programs]
    return replace(
        first,
        exit_code=next((code for code in codes if code), codes[0]),
        seconds=max(program.seconds for program in programs),
        memory_peak=max(program.memory_peak for program in programs),
        memory_growth=max(program.memory_growth for program in programs),
        is_level=all(program.is_level for program in programs),
        vram_peaks=_most([program.vram_peaks for program in programs]),
        gpu_use=max(uses, default=None),
        cpus=max(program.cpus for program in programs),
        read_bytes=max(program.read_bytes for program in programs),
        written_bytes=max(program.written_bytes for program in programs),
        seconds_per_step=max(paces, default=None),
        whole_seconds=max((seconds for seconds in whole if seconds is not None), default=None),
        whole_between=max(
            (program.whole_between for program in programs if program.whole_between),
            key=lambda between: between[1],
            default=None,
        ),
    )


def _most(peaks_by_program: Sequence[Mapping[str, int]]) -> dict[str, int]:
    names = {name for peaks in peaks_by_program for name in peaks}
    return {name: max(peaks.get(name, 0) for peaks in peaks_by_program) for name in sorted(names)}


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.5g}")


def summarise(
    looks: Sequence[Look],
    marks: Sequence[Mark],
    *,
    began: float,
    ended: float,
    exit_code: int | None = None,
    total: int | None = None,
    left: float | None = None,
    left_between: tuple[float, float] | None = None,
) -> Measured:
    """The figures of a program that began and ended at these times."""
    lasted = ended - began
    last = looks[-1] if looks else Look(began, 0, 0, 0.0)
    uses = [look.gpu_use for look in looks if look.gpu_use is not None]
    growth = growth_of([(look.at, float(look.memory)) for look in looks])
    pace = seconds_per_step(marks)
    measured = Measured(
        seconds=lasted,
        exit_code=exit_code,
        memory_peak=max((look.memory_peak for look in looks), default=0),
        memory_growth=growth or 0.0,
        is_level=has_levelled(looks),
        vram_peaks=_peaks(looks),
        gpu_use=sum(uses) / len(uses) if uses else None,
        cpus=last.cpu_seconds / (last.at - began) if last.at > began else 0.0,
        read_bytes=max((look.read_bytes for look in looks), default=0),
        written_bytes=max((look.written_bytes for look in looks), default=0),
        step=marks[-1][0] if marks else 0,
        total=total,
        seconds_per_step=pace,
        warm_up=marks[0][1] - began if marks else None,
    )
    if exit_code == 0:
        return replace(measured, whole_seconds=lasted)
    whole = estimate_range(
        marks, total, began=began, now=ended, left=left, left_between=left_between
    )
    if whole is None:
        return measured
    return replace(measured, whole_seconds=whole[0], whole_between=whole[1:])


def estimate_range(
    marks: Sequence[Mark],
    total: int | None,
    *,
    began: float,
    now: float,
    left: float | None = None,
    left_between: tuple[float, float] | None = None,
) -> tuple[float, float, float] | None:
    """Seconds of a whole run as they are expected, at least and at most: the time so far, plus
    the remaining steps at the recent pace and its trend.

    The time before the first mark counts once. `left` is what the program itself expected after
    its last mark: it knows its phases, and how its last run went.
    """
    pace = seconds_per_step(marks)
    if left is not None and marks:
        low, high = left_between or (left, left)
        between = (left, low, high)
    elif pace is None or total is None:
        return None
    else:
        rest = max(0, total - marks[-1][0])
        seen = marks[-1][0] / total if total else 1.0
        between = range_of(regular_intervals(marks), pace * rest, rest, seen=seen, again=False)
        # Part of the current step is already done.
        in_step = min(now - marks[-1][1], pace) if rest else now - marks[-1][1]
        between = (max(in_step, between[0]), between[1], between[2])
    expected, low, high = (max(marks[-1][1] - began + seconds, now - began) for seconds in between)
    return expected, min(low, expected), max(high, expected)


def has_levelled(looks: Sequence[Look]) -> bool:
    """Whether neither host memory nor that of any GPU grew in the last third of the time."""
    if len(looks) < _FEWEST_LOOKS:
        return False
    late = looks[0].at + (looks[-1].at - looks[0].at) * 2 / 3
    names = {name for look in looks for name in look.vram}
    series = [[(look.at, look.memory) for look in looks]]
    series += [[(look.at, look.vram.get(name, 0)) for look in looks] for name in names]
    for column in series:
        before = max(value for at, value in column if at < late)
        after = max(value for at, value in column if at >= late)
        if after > max(before * (1 + _SLACK), before + _LEAST_GROWTH / 4):
            return False
    return True


def growth_of(series: Sequence[tuple[float, float]]) -> float | None:
    """Units per second by which it grows steadily in the second half; None: it does not.

    Steadily: each quarter of that half is above the one before it.
    """
    if len(series) < 2 * _FEWEST_LOOKS:
        return None
    half = series[len(series) // 2 :]
    size = len(half) // 4
    if not size:
        return None
    means = [
        sum(value for _, value in half[place * size : (place + 1) * size]) / size
        for place in range(4)
    ]
    step = _LEAST_GROWTH / 12
    if not all(after > before + step for before, after in pairwise(means)):
        return None
    if means[3] - means[0] < max(_LEAST_GROWTH / 4, _SLACK / 2 * means[0]):
        return None
    seconds = half[3 * size][0] - half[0][0]
    return (means[3] - means[0]) / seconds if seconds > 0 else None


def is_enough(looks: Sequence[Look], marks: Sequence[Mark], seconds: float, least: float) -> bool:
    """Whether measuring longer would add little."""
    if seconds < least or not has_levelled(looks) or len(marks) < _FEW_MARKS:
        return False
    spread = marks[-1][1] - marks[0][1]
    return len(marks) >= ENOUGH_MARKS and spread >= least / 3


def _peaks(looks: Sequence[Look]) -> dict[str, int]:
    peaks: dict[str, int] = {}
    for look in looks:
        for name, size in look.vram.items():
            peaks[name] = max(peaks.get(name, 0), size)
    return {name: size for name, size in peaks.items() if size}
