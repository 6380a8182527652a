"""What a measurement means, for people and for runyard.yaml. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from runyard.gauge.advice import Ask, Room, ask_for, memory_at_the_end, room_on, rooms, smaller_gpu
from runyard.gauge.measured import Measured, worst
from runyard.gauge.measuring import Card, Seen
from runyard.reading.units import short_memory, short_time

if TYPE_CHECKING:
    from runyard.config.request import Request
    from runyard.gauge.packs import Climb

_GB = 1e9
_MIB = 1 << 20


@dataclass(frozen=True)
class Raw:
    """The measurements before any conclusion. A job sends them back in this form."""

    seen: Seen
    cards: tuple[Card, ...]
    at_once: int = 1
    """Programs that ran together."""
    climb: Climb | None = None
    job_memory: int | None = None
    """MiB that the job, or the machine, has."""


@dataclass(frozen=True)
class Conclusion:
    """`measured` is the program alone, or the worst of each figure if several ran together."""

    measured: Measured
    hardware: str
    ask: Ask
    rooms: tuple[Room, ...]
    notes: tuple[str, ...]
    climb: Climb | None = None
    fits: bool | None = None
    """Whether the programs that ran together fit into the job; None for a single program."""

    def settings(self) -> dict[tuple[str, str], str]:
        """For runyard.yaml."""
        ask = self.ask
        values = {("resources", "memory"): short_memory(ask.memory)}
        values["resources", "cpus"] = str(ask.cpus)
        if ask.seconds is not None:
            values["resources", "time"] = short_time(ask.seconds)
        if ask.per_gpu is not None:
            values["agents", "per_gpu"] = str(ask.per_gpu)
        if ask.chain is not None:
            values["agents", "chain"] = str(ask.chain)
        return values

    def to_json(self) -> dict[str, Any]:
        levels = () if self.climb is None else self.climb.levels
        ask = {name: value for name, value in asdict(self.ask).items() if value is not None}
        return {
            "hardware": self.hardware,
            "figures": self.measured.to_json(),
            "ask": ask,
            "fits": self.fits,
            "rooms": [asdict(room) for room in self.rooms],
            "levels": [{"count": level.count, "rate": level.rate} for level in levels],
            "notes": list(self.notes),
        }


def hardware_of(cards: Sequence[Card]) -> str:
    """The model of GPU; empty if there is none."""
    return next((card.model for card in cards if card.model), "GPU" if cards else "")


def conclude(raw: Raw, request: Request) -> Conclusion:
    measured = worst(raw.seen.programs)
    margins, profile = request.gauge, request.profile
    limit = profile.limit(request.resources.partition, request.resources.qos)
    gpu_rooms = rooms(profile, measured.vram_peak, margins.gpu_memory_margin)
    programs, slow_down, per_gpu = raw.at_once, 1.0, None
    if raw.climb is not None:
        best, alone = raw.climb.best, raw.climb.levels[0]
        programs, per_gpu = best.count, best.count if raw.cards else None
        gain = best.gain_over(alone)
        slow_down = best.count / gain if gain else 1.0
    elif raw.at_once > 1 and raw.cards:
        per_gpu = -(-raw.at_once // len(raw.cards))
    elif measured.vram_peak:
        # One program alone: more might fit. Only --pack measures whether more pay off.
        per_gpu = None
    # The ranks of a node are measured together. Memory is requested per node, CPUs per rank.
    ranks = (request.resources.tasks_per_node or 1) if request.distributed else 1
    ask = ask_for(
        replace(measured, cpus=measured.cpus / ranks), margins, programs=programs, per_gpu=per_gpu,
        slow_down=max(1.0, slow_down), longest=limit.longest,
    )  # fmt: skip
    notes = [
        *_trust(measured),
        *_time_notes(measured, ask, limit.chaining),
        *_gpu_notes(raw, measured, gpu_rooms, request, programs),
    ]
    fits = None
    if raw.at_once > 1 and raw.climb is None:
        fits, fit_notes = _whether_it_fits(raw)
        notes += fit_notes
    return Conclusion(
        measured, hardware_of(raw.cards), ask, tuple(gpu_rooms), tuple(notes), raw.climb, fits
    )


def _trust(measured: Measured) -> list[str]:
    """Reasons not to trust the figures."""
    notes = []
    if measured.memory_growth:
        a_minute = 60 * measured.memory_growth / 1e6
        end = memory_at_the_end(measured)
        later = f", {end / _GB:.1f} GB at the end of a whole run" if end else ""
        notes.append(
            f"host memory grows steadily, by {a_minute:.0f} MB a minute{later}: what is asked for "
            "here is not safe. Allocate buffers once, with small types, and keep no history of "
            "tensors"
        )
    elif not measured.is_level and measured.exit_code is None:
        notes.append(
            f"memory had not levelled out after {measured.seconds:.0f} s: --for 10m looks longer"
        )
    if measured.vram_is_of_card:
        notes.append(
            "the driver does not tell whose GPU memory it is (it counts processes outside of this "
            "container): this is what the whole card's grew by"
        )
    return notes


def _time_notes(measured: Measured, ask: Ask, chaining: bool) -> list[str]:
    if measured.whole_seconds is None:
        if measured.seconds_per_step is None:
            return [
                "it logged no steps, so how long it takes is not known: log with wandb, call "
                "runyard.train.progress, or let it run to its end with --whole"
            ]
        return ["how many steps a whole run has is not known: --steps N tells, and train.progress"]
    if ask.chain is None or ask.seconds is None:
        return []
    if chaining:
        return [
            f"a whole run is longer than a job may be here ({short_time(ask.seconds)}): --chain "
            f"{ask.chain}, with checkpoints, goes on from job to job"
        ]
    return [
        f"a whole run is longer than a job may be here ({short_time(ask.seconds)}), and jobs may "
        "not follow one another: fewer steps, or another QOS or partition"
    ]


def _gpu_notes(
    raw: Raw, measured: Measured, gpu_rooms: Sequence[Room], request: Request, programs: int
) -> list[str]:
    if not raw.cards:
        return []
    if not measured.vram_peak:
        return ["the program used no GPU"]
    notes = []
    card = raw.cards[0]
    fit = room_on(card.total, measured.vram_peak, request.gauge.gpu_memory_margin)
    if fit > 1 and raw.at_once == 1 and raw.climb is None:
        notes.append(f"{fit} fit this GPU's memory; --pack finds out how many of them pay")
    used = request.resources.gpu_type
    smaller = smaller_gpu(list(gpu_rooms), used, programs, measured.vram_peak)
    if smaller is not None:
        kind = "the slice" if smaller.is_slice else "the smaller"
        notes.append(
            f"most of the {used} stays empty: {kind} {smaller.gpu} ({smaller.memory_gb:g} GB) has "
            f"room for {smaller.count}, and is often free sooner"
        )
    elif programs * measured.vram_peak * 4 < card.total and (
        raw.climb is not None or raw.at_once > 1
    ):
        notes.append("most of the card stays empty: a smaller GPU, or a slice of one, may do")
    return notes


def _whether_it_fits(raw: Raw) -> tuple[bool, list[str]]:
    """Whether a whole task file fits, if all its lines run together."""
    notes, fits = [], True
    needed = sum(program.memory_peak for program in raw.seen.programs)
    if raw.job_memory is not None:
        has = raw.job_memory * _MIB
        fits = needed <= has
        verb = "fit" if fits else "do not fit"
        notes.append(
            f"together {needed / _GB:.1f} GB host memory {verb} the {has / _GB:.1f} GB here"
        )
    together: dict[str, int] = {}
    for program in raw.seen.programs:
        for name, peak in program.vram_peaks.items():
            together[name] = together.get(name, 0) + peak
    for card in raw.cards:
        if card.name in together:
            is_room = together[card.name] <= card.total
            fits = fits and is_room
            verb = "fit" if is_room else "do not fit"
            notes.append(
                f"GPU {card.name}: together {together[card.name] / _GB:.1f} GB {verb} its "
                f"{card.total / _GB:.0f} GB"
            )
    return fits, notes


def raw_to_json(raw: Raw) -> dict[str, Any]:
    return {
        "programs": [program.to_json() for program in raw.seen.programs],
        "memory_together": raw.seen.memory_together,
        "said": raw.seen.said,
        "mps": raw.seen.mps,
        "is_cut_short": raw.seen.is_cut_short,
        "cards": [asdict(card) for card in raw.cards],
        "at_once": raw.at_once,
        "job_memory": raw.job_memory,
        "climb": None if raw.climb is None else asdict(raw.climb),
    }


def raw_from_json(record: Mapping[str, Any]) -> Raw:
    from runyard.gauge.measured import from_json
    from runyard.gauge.packs import Climb, Level

    climb = record["climb"]
    return Raw(
        seen=Seen(
            tuple(from_json(program) for program in record["programs"]),
            memory_together=record["memory_together"],
            said=record["said"],
            mps=record["mps"],
            is_cut_short=record["is_cut_short"],
        ),
        cards=tuple(Card(**card) for card in record["cards"]),
        at_once=record["at_once"],
        job_memory=record["job_memory"],
        climb=None
        if climb is None
        else Climb(
            tuple(Level(**level) for level in climb["levels"]), Level(**climb["best"]), climb["why"]
        ),
    )
