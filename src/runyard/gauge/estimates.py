"""Before a submission: how long, how many hours of CPUs and GPUs, and whether it fits. Pure."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from runyard.reading.units import round_time, short_memory, short_time
from runyard.train.pace import in_words

if TYPE_CHECKING:
    from runyard.shapes.jobs import Known

_MIB = 1 << 20
# An estimate uses the trials of this many of the newest sweeps.
_MOST_SWEEPS = 3


@dataclass(frozen=True)
class Basis:
    """What is known of trials of this kind, and how it is known (`said`)."""

    seconds: float
    most_seconds: float
    said: str
    between: tuple[float, float] | None = None
    """Nine of ten trials take so long; None: nobody knows."""
    memory_peak: int | None = None
    vram_peak: int | None = None


@dataclass(frozen=True)
class SubmissionSize:
    """What a submission asks for: `agents` jobs or tasks, each with `slots` programs at a time."""

    trials: int | None
    agents: int
    slots: int
    cpus: int = 1
    gpus: int = 0
    at_once: int | None = None
    time: float | None = None
    """Of each job."""
    memory: int | None = None
    """MiB on each node."""
    chain: int | None = None
    trials_each: int | None = None
    longest: float | None = None
    """The site's limit."""
    chaining: bool = True


@dataclass(frozen=True)
class Estimate:
    """Seconds and hours. `wall` counts from the start of the jobs, as many at once as allowed."""

    each: float
    wall: float | None
    core_hours: float | None
    gpu_hours: float | None
    basis: str
    memory_peak: int | None = None
    between: tuple[float, float] | None = None
    """Seconds of a trial, at least and at most."""

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


def basis_of(known: Known, hardware: str | None = None) -> Basis | None:
    """Earlier sweeps of the kind count most; otherwise the newest measurement, if possible on the
    same hardware."""
    ran = [sweep for sweep in known["sweeps"] if sweep["truth"]][:_MOST_SWEEPS]
    if ran:
        trials = sum(sweep["truth"]["trials"] for sweep in ran)
        mean = sum(sweep["truth"]["seconds"] * sweep["truth"]["trials"] for sweep in ran) / trials
        named = ", ".join(sweep["id"] for sweep in ran)
        most = max(sweep["truth"]["most"] for sweep in ran)
        # A server of an older version does not tell the least.
        least = min(sweep["truth"].get("least", mean) for sweep in ran)
        return Basis(
            seconds=mean,
            most_seconds=most,
            between=past_range(trials, mean, least, most),
            said=f"{trials} trials of {'sweep' if len(ran) == 1 else 'sweeps'} {named} took that",
            memory_peak=_largest([sweep["truth"]["memory_peak"] for sweep in ran]),
            vram_peak=_largest([sweep["truth"]["vram_peak"] for sweep in ran]),
        )
    measured = [row for row in known["figures"] if row["figures"].get("whole_seconds")]
    wanted = [row for row in measured if hardware and hardware.lower() in row["hardware"].lower()]
    if not measured:
        return None
    newest = (wanted or measured)[0]
    figures = newest["figures"]
    where = f" on {newest['hardware']}" if newest["hardware"] else ""
    between = figures.get("whole_between")
    return Basis(
        seconds=figures["whole_seconds"],
        most_seconds=figures["whole_seconds"],
        between=(between[0], between[1]) if between else None,
        said=f"runyard gauge measured it{where}",
        memory_peak=figures.get("memory_peak"),
        vram_peak=figures.get("vram_peak"),
    )


def past_range(trials: int, mean: float, least: float, most: float) -> tuple[float, float]:
    """Where the next one is, nine times of ten: between those that were, and a little beyond while
    they are few. Of n that were, the next is the shortest or the longest 2 times in n + 1."""
    few = max(0.0, 1 - (trials - 1) / 18)
    beyond = few * (0.3 * (most - least) + 0.4 * mean / trials)
    return max(0.0, least - beyond), most + beyond


def _largest(values: list[float | None]) -> int | None:
    known = [int(value) for value in values if value is not None]
    return max(known, default=None)


def estimate(basis: Basis, size: SubmissionSize) -> Estimate:
    each = basis.seconds
    if size.trials is None:
        return Estimate(each, None, None, None, basis.said, basis.memory_peak, basis.between)
    running = min(size.agents, size.at_once or size.agents)
    places = max(1, running * size.slots)
    wall = math.ceil(size.trials / places) * each
    # An agent costs hours as long as any of its slots works.
    agent_hours = math.ceil(size.trials / max(1, size.slots)) * each / 3600
    return Estimate(
        each=each,
        wall=wall,
        core_hours=agent_hours * size.cpus,
        gpu_hours=agent_hours * size.gpus if size.gpus else None,
        basis=basis.said,
        memory_peak=basis.memory_peak,
        between=basis.between,
    )


def estimate_text(result: Estimate, size: SubmissionSize) -> str:
    """One sentence."""
    if size.trials is None:
        return f"estimate: about {in_words(result.each)} a trial{_span(result)} ({result.basis})"
    many = "one program" if size.trials == 1 else f"{size.trials} trials"
    each = "" if size.trials == 1 else " each"
    parts = [
        f"estimate: {many} of about {in_words(result.each)}{each}{_span(result)} ({result.basis})"
    ]
    if size.trials > 1 and result.wall is not None:
        parts.append(f"in all about {in_words(result.wall)} from the start of the first")
    if result.core_hours is not None:
        gpu = f", {_hours(result.gpu_hours)} GPU-hours" if result.gpu_hours else ""
        parts.append(f"{_hours(result.core_hours)} CPU-hours{gpu}")
    return "; ".join(parts)


def _span(result: Estimate) -> str:
    if result.between is None:
        return ""
    low, high = (in_words(seconds) for seconds in result.between)
    return "" if low == high else f", {low} to {high}"


def _hours(value: float) -> str:
    return f"{value:.3g}" if value >= 0.01 else "under 0.01"


def advise(
    basis: Basis, size: SubmissionSize, *, time_margin: float, memory_margin: float
) -> list[str]:
    """What does not fit, and which chain, split or request would."""
    notes = []
    longest = basis.between[1] if basis.between is not None else 0.0
    need = round_time(max(basis.most_seconds * (1 + time_margin), longest))
    if size.time is not None and size.chain is None:
        notes += _too_long(basis, size, need)
    if size.memory and basis.memory_peak:
        wanted = size.slots * basis.memory_peak * (1 + memory_margin) / _MIB
        if wanted > size.memory:
            notes.append(
                f"{short_memory(size.memory)} of memory may not do: {size.slots} at a time took "
                f"up to {size.slots * basis.memory_peak / 1e9:.1f} GB; --memory "
                f"{short_memory(1024 * math.ceil(wanted / 1024))}, or fewer at a time"
            )
    return notes


def _too_long(basis: Basis, size: SubmissionSize, need: float) -> list[str]:
    assert size.time is not None
    if basis.most_seconds > size.time:
        long = f"a trial takes about {in_words(basis.most_seconds)}, and a job ends after "
        long += short_time(size.time)
        if size.longest is None or need <= size.longest:
            return [f"{long}: --time {short_time(need)}"]
        links = math.ceil(need / size.longest)
        if size.chaining:
            return [
                f"{long}, of at most {short_time(size.longest)} here: --time "
                f"{short_time(size.longest)} --chain {links}, if it writes checkpoints"
            ]
        return [
            f"{long}, of at most {short_time(size.longest)} here, and jobs may not follow one "
            "another: fewer steps a trial, or another partition"
        ]
    if size.trials is None:
        return []
    in_turn = math.ceil(size.trials / max(1, size.agents * size.slots))
    if size.trials_each is not None:
        in_turn = math.ceil(size.trials_each / max(1, size.slots))
    if in_turn * basis.seconds <= size.time:
        return []
    fitting = max(1, int(size.time // basis.seconds))
    agents = math.ceil(size.trials / (fitting * max(1, size.slots)))
    return [
        f"a job ends after {short_time(size.time)}, and each has {in_turn} trials to do one after "
        f"the other, about {in_words(in_turn * basis.seconds)}: --agents {agents}, fewer trials a "
        f"job (--trials-each {fitting * size.slots}), or a longer --time"
    ]
