"""Before a submission: how long, how many hours of CPUs and GPUs, and whether it fits. Pure."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from runyard.reading.units import round_time, short_memory, short_time
from runyard.train.pace import in_words

if TYPE_CHECKING:
    from runyard.client.figures import Known

_MIB = 1 << 20
# Of the sweeps that ran, trials of the newest so many are believed.
_MOST_SWEEPS = 3


@dataclass(frozen=True)
class Basis:
    """What is known of a trial of this kind, and from where."""

    seconds: float
    most_seconds: float
    said: str
    memory_peak: int | None = None
    vram_peak: int | None = None


@dataclass(frozen=True)
class Asked:
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
    """Seconds and hours. `wall` counts from when the jobs start, all that may at once."""

    each: float
    wall: float | None
    core_hours: float | None
    gpu_hours: float | None
    basis: str
    memory_peak: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {name: one for name, one in asdict(self).items() if one is not None}


def basis_of(known: Known, hardware: str | None = None) -> Basis | None:
    """What sweeps of the kind took is believed most; else the newest measurement, that on the
    hardware in question if there is one."""
    ran = [one for one in known["sweeps"] if one["truth"]][:_MOST_SWEEPS]
    if ran:
        trials = sum(one["truth"]["trials"] for one in ran)
        mean = sum(one["truth"]["seconds"] * one["truth"]["trials"] for one in ran) / trials
        named = ", ".join(one["id"] for one in ran)
        return Basis(
            seconds=mean,
            most_seconds=max(one["truth"]["most"] for one in ran),
            said=f"{trials} trials of {'sweep' if len(ran) == 1 else 'sweeps'} {named} took that",
            memory_peak=_largest([one["truth"]["memory_peak"] for one in ran]),
            vram_peak=_largest([one["truth"]["vram_peak"] for one in ran]),
        )
    measured = [one for one in known["figures"] if one["figures"].get("whole_seconds")]
    wanted = [one for one in measured if hardware and hardware.lower() in one["hardware"].lower()]
    if not measured:
        return None
    newest = (wanted or measured)[0]
    told = newest["figures"]
    where = f" on {newest['hardware']}" if newest["hardware"] else ""
    return Basis(
        seconds=told["whole_seconds"],
        most_seconds=told["whole_seconds"],
        said=f"runyard gauge measured it{where}",
        memory_peak=told.get("memory_peak"),
        vram_peak=told.get("vram_peak"),
    )


def _largest(values: list[float | None]) -> int | None:
    known = [int(one) for one in values if one is not None]
    return max(known, default=None)


def estimate(basis: Basis, asked: Asked) -> Estimate:
    each = basis.seconds
    if asked.trials is None:
        return Estimate(each, None, None, None, basis.said, basis.memory_peak)
    running = min(asked.agents, asked.at_once or asked.agents)
    places = max(1, running * asked.slots)
    wall = math.ceil(asked.trials / places) * each
    # An agent is paid for while any of its slots works.
    agent_hours = math.ceil(asked.trials / max(1, asked.slots)) * each / 3600
    return Estimate(
        each=each,
        wall=wall,
        core_hours=agent_hours * asked.cpus,
        gpu_hours=agent_hours * asked.gpus if asked.gpus else None,
        basis=basis.said,
        memory_peak=basis.memory_peak,
    )


def estimate_text(found: Estimate, asked: Asked) -> str:
    """One sentence."""
    if asked.trials is None:
        return f"estimate: about {in_words(found.each)} a trial ({found.basis})"
    many = "one program" if asked.trials == 1 else f"{asked.trials} trials"
    each = "" if asked.trials == 1 else " each"
    parts = [f"estimate: {many} of about {in_words(found.each)}{each} ({found.basis})"]
    if asked.trials > 1 and found.wall is not None:
        parts.append(f"in all about {in_words(found.wall)} from the start of the first")
    if found.core_hours is not None:
        gpu = f", {_hours(found.gpu_hours)} GPU-hours" if found.gpu_hours else ""
        parts.append(f"{_hours(found.core_hours)} CPU-hours{gpu}")
    return "; ".join(parts)


def _hours(value: float) -> str:
    return f"{value:.3g}" if value >= 0.01 else "under 0.01"


def advise(basis: Basis, asked: Asked, *, time_margin: float, memory_margin: float) -> list[str]:
    """What does not fit, and the chain, split or request that would."""
    notes = []
    need = round_time(basis.most_seconds * (1 + time_margin))
    if asked.time is not None and asked.chain is None:
        notes += _too_long(basis, asked, need)
    if asked.memory and basis.memory_peak:
        wanted = asked.slots * basis.memory_peak * (1 + memory_margin) / _MIB
        if wanted > asked.memory:
            notes.append(
                f"{short_memory(asked.memory)} of memory may not do: {asked.slots} at a time took "
                f"up to {asked.slots * basis.memory_peak / 1e9:.1f} GB; --memory "
                f"{short_memory(1024 * math.ceil(wanted / 1024))}, or fewer at a time"
            )
    return notes


def _too_long(basis: Basis, asked: Asked, need: float) -> list[str]:
    assert asked.time is not None
    if basis.most_seconds > asked.time:
        long = f"a trial takes about {in_words(basis.most_seconds)}, and a job ends after "
        long += short_time(asked.time)
        if asked.longest is None or need <= asked.longest:
            return [f"{long}: --time {short_time(need)}"]
        links = math.ceil(need / asked.longest)
        if asked.chaining:
            return [
                f"{long}, of at most {short_time(asked.longest)} here: --time "
                f"{short_time(asked.longest)} --chain {links}, if it writes checkpoints"
            ]
        return [
            f"{long}, of at most {short_time(asked.longest)} here, and jobs may not follow one "
            "another: fewer steps a trial, or another partition"
        ]
    if asked.trials is None:
        return []
    in_turn = math.ceil(asked.trials / max(1, asked.agents * asked.slots))
    if asked.trials_each is not None:
        in_turn = math.ceil(asked.trials_each / max(1, asked.slots))
    if in_turn * basis.seconds <= asked.time:
        return []
    fitting = max(1, int(asked.time // basis.seconds))
    agents = math.ceil(asked.trials / (fitting * max(1, asked.slots)))
    return [
        f"a job ends after {short_time(asked.time)}, and each has {in_turn} trials to do one after "
        f"the other, about {in_words(in_turn * basis.seconds)}: --agents {agents}, fewer trials a "
        f"job (--trials-each {fitting * asked.slots}), or a longer --time"
    ]
