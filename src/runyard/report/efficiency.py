"""What jobs had of the cluster, and what they used of it.

Slurm's accounting is believed first, where a site has it. What it lacks (GPUs, and all of it where
accounting is off) comes from what agents measured of each attempt.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runyard.end_causes import FAILURES
from runyard.shapes.jobs import Job
from runyard.shapes.sweeps import Effort, Worker

_MIB = 1 << 20


@dataclass(frozen=True)
class Use:
    """What one job had, and what it used; None: nobody knows. Sums are over all its tasks."""

    seconds: float | None
    longest: float | None
    cpu_used: float | None
    memory_peak: int | None
    """Bytes, of one node."""
    vram_total: int | None
    vram_peak: int | None
    """Bytes, of one attempt."""
    cpu_lost: float
    """Used by attempts that failed, as is `gpu_lost`."""
    asked: Mapping[str, Any] = field(default_factory=dict)
    tasks: int = 0
    """How many have begun."""
    limit: float | None = None
    cpu_held: float | None = None
    memory_asked: int | None = None
    gpu_held: float = 0.0
    gpu_used: float | None = None
    gpu_lost: float = 0.0
    at_once: int = 1
    """How many programs ran side by side in a task."""
    gpus_touched: int | None = None
    """How many GPUs of a task had anything to do; None: no driver told."""
    source: str = "agents"
    """accounting, or agents."""

    @property
    def cpu_idle(self) -> float | None:
        if self.cpu_held is None or self.cpu_used is None:
            return None
        return max(0.0, self.cpu_held - self.cpu_used)

    @property
    def gpu_idle(self) -> float | None:
        return None if self.gpu_used is None else max(0.0, self.gpu_held - self.gpu_used)

    @property
    def cores_busy(self) -> float | None:
        """Cores that one task kept busy, on average."""
        if self.cpu_used is None or not self.seconds:
            return None
        return self.cpu_used / self.seconds


def use_of(job: Job, workers: Sequence[Worker], attempts: Sequence[Effort], *, now: float) -> Use:
    """Of one job; `workers` and `attempts` may be those of its whole sweep."""
    inside = {worker["key"]: worker for worker in workers if is_in(job, worker["job"])}
    of_job = [attempt for attempt in attempts if attempt["agent"] in inside]
    # Of a job that is not over, accounting knows the tasks that are.
    accounted = job["used"] if job["ended_at"] is not None else {}
    requested = job["asked"]
    spans = _spans(inside.values(), of_job, now)
    seconds = accounted.get("seconds", sum(spans) if spans else _lifetime(job, now))
    is_accounted = "cpu_seconds" in accounted
    measured = _cpu_seconds(of_job)
    if (requested.get("nodes") or 1) > max(1, len(inside)):
        measured = None  # An agent sees the programs of its own node alone.
    cores = _cores(requested)
    held = accounted.get("cpu_seconds_held")
    if held is None and seconds is not None and cores:
        held = cores * seconds
    gpus = _gpus(requested)
    gpu_held = accounted.get("gpu_seconds_held") or (gpus * seconds if seconds else 0.0)
    return Use(
        asked=requested,
        tasks=int(accounted.get("tasks") or len(inside) or (seconds is not None)),
        seconds=seconds,
        longest=accounted.get("longest_seconds", max(spans, default=seconds)),
        limit=accounted.get("limit_seconds") or requested.get("time"),
        cpu_held=held,
        cpu_used=accounted["cpu_seconds"] if is_accounted else measured,
        memory_asked=_memory_asked(job),
        memory_peak=accounted.get("memory_peak") or _memory_peak(of_job),
        gpu_held=gpu_held,
        gpu_used=_gpu_seconds(of_job, now) if gpu_held else None,
        vram_total=_largest(of_job, "vram_total"),
        vram_peak=_largest(of_job, "vram_peak"),
        cpu_lost=sum(_cpu(attempt) for attempt in of_job if attempt["cause"] in FAILURES),
        gpu_lost=(
            _gpu_seconds([attempt for attempt in of_job if attempt["cause"] in FAILURES], now)
            or 0.0
        )
        if gpu_held
        else 0.0,
        at_once=_at_once(of_job, now),
        gpus_touched=_gpus_touched(of_job),
        source="accounting" if is_accounted else "agents",
    )


def use_outside(attempts: Sequence[Effort], *, now: float) -> Use:
    """Of programs that ran in no job of ours: nothing was asked, and so nothing was held."""
    spans = [(attempt["ended_at"] or now) - attempt["started_at"] for attempt in attempts]
    return Use(
        seconds=sum(spans),
        longest=max(spans, default=None),
        cpu_used=_cpu_seconds(attempts),
        memory_peak=_largest(attempts, "memory_peak"),
        vram_total=_largest(attempts, "vram_total"),
        vram_peak=_largest(attempts, "vram_peak"),
        cpu_lost=sum(_cpu(attempt) for attempt in attempts if attempt["cause"] in FAILURES),
    )


def is_in(job: Job, task: str | None) -> bool:
    """Whether a task of Slurm's (123, 123_4) is one of the job's."""
    return (task or "").partition("_")[0] == job["job_id"]


def _lifetime(job: Job, now: float) -> float | None:
    """Where no agent told anything; of an array nobody knows when each task began."""
    if job["started_at"] is None or job["tasks"] > 1:
        return None
    return max(0.0, (job["ended_at"] or now) - job["started_at"])


def _spans(workers: Iterable[Worker], attempts: Iterable[Effort], now: float) -> list[float]:
    """How long each task was held, as its agent tells: from its coming to its going."""
    last: dict[int | None, float] = {}
    for attempt in attempts:
        last[attempt["agent"]] = max(last.get(attempt["agent"], 0.0), attempt["ended_at"] or now)
    tasks: dict[str, tuple[float, float]] = {}
    for worker in workers:
        end = worker["left_at"] or max(worker["heard_at"], last.get(worker["key"], 0.0))
        before = tasks.get(worker["job"] or "", (worker["created_at"], end))
        span = (min(before[0], worker["created_at"]), max(before[1], end))
        tasks[worker["job"] or ""] = span
    return [max(0.0, end - begin) for begin, end in tasks.values()]


def _cores(asked: Mapping[str, Any]) -> int:
    """Of a task of the array: those of all its processes on all its nodes."""
    nodes, processes = asked.get("nodes") or 1, asked.get("tasks_per_node") or 1
    return int((asked.get("cpus") or 0) * processes * nodes)


def _gpus(asked: Mapping[str, Any]) -> int:
    return int((asked.get("gpus") or 0) * (asked.get("nodes") or 1))


def _memory_asked(job: Job) -> int | None:
    """Bytes of one node."""
    memory = int(job["asked"].get("memory") or 0) * _MIB
    return memory or job["used"].get("memory_asked")


def _cpu(attempt: Effort) -> float:
    return float((attempt["usage"] or {}).get("cpu_seconds", 0.0))


def _cpu_seconds(attempts: Sequence[Effort]) -> float | None:
    seconds = [_cpu(attempt) for attempt in attempts if "cpu_seconds" in (attempt["usage"] or {})]
    return sum(seconds) if seconds else None


def _largest(attempts: Iterable[Effort], name: str) -> int | None:
    values = [
        attempt["usage"][name]
        for attempt in attempts
        if attempt["usage"] and attempt["usage"].get(name)
    ]
    return int(max(values)) if values else None


def _memory_peak(attempts: Sequence[Effort]) -> int | None:
    """Of those that ran at one time in one task, together: at most so much, since their peaks need
    not have come at one time."""
    return int(_most_at_once(attempts, _memory)) or None


def _memory(attempt: Effort) -> float:
    return float((attempt["usage"] or {}).get("memory_peak", 0.0))


def _at_once(attempts: Sequence[Effort], now: float) -> int:
    return max(1, int(_most_at_once(attempts, lambda _: 1.0, now)))


def _most_at_once(
    attempts: Sequence[Effort], weigh: Callable[[Effort], float], now: float = math.inf
) -> float:
    events: dict[int | None, list[tuple[float, float]]] = {}
    for attempt in attempts:
        of_agent = events.setdefault(attempt["agent"], [])
        of_agent.append((attempt["started_at"], weigh(attempt)))
        of_agent.append((attempt["ended_at"] or now, -weigh(attempt)))
    most = 0.0
    for of_agent in events.values():
        total = 0.0
        # One that ends as the next begins was not beside it: what is less comes first.
        for _, change in sorted(of_agent):
            total += change
            most = max(most, total)
    return most


def _gpu_seconds(attempts: Sequence[Effort], now: float) -> float | None:
    """How long GPUs were busy. The use that was measured is the card's: of programs that share one,
    each second counts once."""
    cards: dict[tuple[int | None, str], list[Effort]] = {}
    for attempt in attempts:
        usage = attempt["usage"] or {}
        if "gpu_use" in usage:
            for card in str(usage.get("gpu", "")).split(","):
                cards.setdefault((attempt["agent"], card), []).append(attempt)
    if not cards:
        return None
    return sum(_busy(sharing, now) for sharing in cards.values())


def _busy(sharing: Sequence[Effort], now: float) -> float:
    spans = [
        (attempt["started_at"], attempt["ended_at"] or now, attempt["usage"]) for attempt in sharing
    ]
    weighed = [(max(0.0, end - begin), (usage or {})["gpu_use"]) for begin, end, usage in spans]
    whole = sum(length for length, _ in weighed)
    mean = sum(length * use for length, use in weighed) / whole if whole else 0.0
    return mean * covered([(begin, end) for begin, end, _ in spans])


def covered(spans: Sequence[tuple[float, float]]) -> float:
    """How long at least one of these lasted."""
    total, reached = 0.0, float("-inf")
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total


def _gpus_touched(attempts: Sequence[Effort]) -> int | None:
    """In the task where most were: a card counts that held memory of a program."""
    named = [attempt for attempt in attempts if (attempt["usage"] or {}).get("gpu")]
    if not named:
        return None
    cards: dict[int | None, set[str]] = {}
    for effort in named:
        usage = effort["usage"] or {}
        held = cards.setdefault(effort["agent"], set())
        if usage.get("vram_peak"):
            held.update(str(usage["gpu"]).split(","))
    return max(len(card) for card in cards.values())
