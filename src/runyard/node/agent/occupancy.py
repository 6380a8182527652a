"""How many of an agent's slots are in use: all of them, or as many as a GPU is best shared by."""

from __future__ import annotations

import contextlib
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from runyard.node.agent.work import Slot, Work
    from runyard.node.attempt.trial_attempt import Attempt
    from runyard.node.devices.layout import Layout
    from runyard.node.devices.mps import Mps
    from runyard.node.devices.pack_memory import PackMemory
    from runyard.node.devices.packing import Pack, Reading

_JUST_NOW = 10.0
_WRITE_EVERY = 30.0


class Occupancy:
    """Which slots may ask for a trial, and what their programs are told of their place."""

    def __init__(self, work: Work, layout: Layout, mps: Mps | None = None) -> None:
        self._work = work
        self._layout = layout
        self.mps = mps
        self._packs: dict[tuple[str, ...], Pack] = {}
        self._ended_at: dict[tuple[str, ...], float] = {}
        self._cards: dict[str, dict[str, Any]] = {}
        self._memories: dict[tuple[str, ...], PackMemory] = {}
        self._written_at = 0.0
        if layout.grows:
            # Where the number is to be found out.
            from runyard.node.devices.gpus import ask_cards
            from runyard.node.devices.packing import Pack

            if layout.gpus.names:
                self._cards = {card["name"]: card for card in ask_cards(layout.gpus.names)}
            places = dict.fromkeys(share.gpus for share in layout.shares)
            for gpus in places:
                most = sum(share.gpus == gpus for share in layout.shares)
                self._packs[gpus] = Pack(most, self._reporter(gpus))

    @property
    def line(self) -> str:
        """What is done on each GPU, and why; empty where nothing was to be found out."""
        lines = [(gpus, pack.line) for gpus, pack in self._packs.items() if pack.line]
        return "; ".join(f"{self._where(gpus)}: {line}" for gpus, line in lines)

    @property
    def slots(self) -> int:
        """How many are in use at a time now."""
        if not self._packs:
            return len(self._work.slots)
        held = {gpus: pack.wanted for gpus, pack in self._packs.items()}
        return sum(held.values()) + sum(self._gpus(slot) not in held for slot in self._work.slots)

    def may_ask(self, slot: Slot) -> bool:
        """Whether there is room for what the slot would begin; else it rests until there is."""
        pack = self._packs.get(self._gpus(slot))
        if pack is None:
            return True
        busy = sum(
            other.attempt is not None or other.token is not None or other.is_preparing
            for other in self._beside(slot)
        )
        slot.rests = busy >= pack.wanted
        return not slot.rests

    def variables(self, slot: Slot, environ: dict[str, str]) -> dict[str, str]:
        """What the slot's program is told of its place."""
        share = self._layout.shares[slot.index]
        pack = self._packs.get(share.gpus)
        together = share.together if pack is None else pack.wanted
        values = self._layout.variables(slot.index, environ, slots=self.slots, together=together)
        return values if self.mps is None else self.mps.settings(values)

    def begins(self, slot: Slot, project: str, words: list[str]) -> None:
        """A slot's program begins; the first one's name says what earlier sweeps have learnt."""
        gpus = self._gpus(slot)
        pack = self._packs.get(gpus)
        if pack is None or not self._layout.grows or gpus in self._memories:
            return
        from runyard.node.devices.pack_memory import PackMemory, program_of

        model = ",".join(self._cards.get(name, {}).get("model", "") for name in gpus)
        setting = "mps" if self.mps is not None else "turns"
        program, _ = program_of(words)
        memory = PackMemory(self._work.home, project, program, model, setting)
        self._memories[gpus] = memory
        learnt = memory.read()
        if learnt is not None:
            pack.learn(learnt)

    def close(self) -> None:
        """Nothing more begins: what was learnt is kept."""
        for gpus, memory in self._memories.items():
            learnt = self._packs[gpus].learnt()
            if learnt is not None:
                memory.write(learnt)

    def hold_at_one(self, gpu: str) -> None:
        """It lets one program in at a time."""
        from runyard.node.devices.packing import Pack

        self._packs[(gpu,)] = Pack(1)

    def gpus_of(self, slot: Slot) -> tuple[str, ...]:
        return self._gpus(slot)

    @contextlib.contextmanager
    def pinned(self, slot: Slot) -> Iterator[None]:
        with self._layout.pinned(slot.index):
            yield

    def is_crowded(self, slot: Slot) -> bool:
        """Whether a program that ran out of memory would have more with fewer beside it."""
        pack = self._packs.get(self._gpus(slot))
        if pack is None:
            return False
        if any(other.attempt is not None and other.attempt.runs for other in self._beside(slot)):
            return True
        # Those beside it may have ended a moment before, for the same reason.
        ended = self._ended_at.get(self._gpus(slot), -_JUST_NOW)
        return pack.wanted > 1 and time.monotonic() - ended < _JUST_NOW

    def look(self, samples: dict[str, Any], ask: Callable[[Slot], None]) -> None:
        """What the sampler saw; where there is room for more now, more is asked for."""
        now = time.monotonic()
        for gpus, pack in self._packs.items():
            running = [other for other in self._on(gpus) if other.attempt is not None]
            readings = [_reading(slot.attempt) for slot in running if slot.attempt is not None]
            seen = [samples["gpus"][name] for name in gpus if name in samples["gpus"]]
            use = max((card["use"] for card in seen if card["use"] is not None), default=None)
            pack.look(now, readings, _memory(seen, readings) if seen else None, use)
        if now - self._written_at > _WRITE_EVERY:
            self._written_at = now
            self.close()
        self._fill(ask)

    def ended(self, slot: Slot, attempt: Attempt) -> None:
        """A slot's program has ended."""
        pack = self._packs.get(self._gpus(slot))
        if pack is None:
            return
        self._ended_at[self._gpus(slot)] = time.monotonic()
        if attempt.cause == "crowded":
            beside = [other for other in self._beside(slot) if other.attempt is not None]
            pack.ran_out(attempt.token, max(1 + len(beside), pack.wanted))
        elif attempt.ending is None and attempt.exit_code == 0:
            pack.ended(time.monotonic(), attempt.token)

    def _fill(self, ask: Callable[[Slot], None]) -> None:
        for slot in self._work.slots:
            if slot.rests and self.may_ask(slot):
                ask(slot)

    def _gpus(self, slot: Slot) -> tuple[str, ...]:
        return self._layout.shares[slot.index].gpus

    def _on(self, gpus: tuple[str, ...]) -> list[Slot]:
        return [slot for slot in self._work.slots if self._gpus(slot) == gpus]

    def _beside(self, slot: Slot) -> list[Slot]:
        return [other for other in self._on(self._gpus(slot)) if other is not slot]

    def _reporter(self, gpus: tuple[str, ...]) -> Callable[[str], None]:
        return lambda line: self._work.report(f"{self._where(gpus)}: {line}")

    def _where(self, gpus: tuple[str, ...]) -> str:
        """As people know them: `GPU 0`, and not by its UUID."""
        if not gpus:
            return "CPUs"
        return "GPU " + ",".join(str(self._cards.get(name, {}).get("index", name)) for name in gpus)


def _reading(attempt: Attempt) -> Reading:
    """Rows that it logs; of a program that logs none, lines that it prints."""
    from runyard.node.devices.packing import Reading

    vram = int(attempt.usage.get("vram_peak", 0))
    rows, steps, at = attempt.rows
    if rows and at is not None:
        return Reading(attempt.token, rows, at, vram, steps, "rows", attempt.begun)
    lines, at = attempt.lines, attempt.line_at
    return Reading(attempt.token, lines, at, vram, None, "lines", attempt.begun)


def _memory(seen: list[dict[str, Any]], readings: list[Reading]) -> tuple[int, int]:
    """Bytes of these GPUs in all, and those that are not our programs'."""
    total, used = (sum(memory[key] for memory in seen) for key in ("total", "used"))
    ours = sum(reading.vram for reading in readings)
    if not ours and readings:
        # In some containers the driver does not say whose it is: then all of it may be ours.
        for reading in readings:
            reading.vram = used // len(readings)
        return total, 0
    return total, max(0, used - ours)
