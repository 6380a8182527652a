"""A sweep on a simulated GPU whose true speed is known: a fixed number at a time, or a pack's.

A double, because many curves and trial lengths are to be judged and no GPU is here. Programs import
(which the GPU does not feel), work at a speed that those beside them decide, log rows, and end. One
that does not fit the memory beside others goes back to the queue, as an agent has it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from runyard.node.devices.packing import Pack, Reading

GIB = 1 << 30
BEGIN = 1000.0


@dataclass(frozen=True)
class Sweep:
    """`length`: seconds of a trial alone, its start-up among them; `curve`: what so many at work
    get done together. `large`: the share of trials that need ten times the memory."""

    curve: Mapping[int, float]
    length: float = 120.0
    start: float = 12.0
    trials: int = 64
    most: int = 16
    noise: float = 0.03
    spread: float = 0.0
    vram: int = 2 * GIB
    total: int = 140 * GIB
    large: float = 0.0
    large_load: float = 1.0
    """What a large one is for those beside it: as so many small ones."""
    large_seconds: float = 10.0
    """How many times as long as a small one it works."""
    log_every: float = 0.15
    """Seconds between rows of one alone; 0: it logs nothing."""
    use_alone: float | None = 0.5
    until: float = math.inf
    """Seconds after which it is broken off."""
    seed: int = 0


@dataclass
class _Program:
    trial: int
    speed: float
    work: float
    start: float
    vram: int
    load: float = 1.0
    token: str = ""
    began: float = 0.0
    done: float = 0.0
    rows: int = 0
    row_at: float = 0.0
    row_steps: int = 0

    @property
    def works_at(self) -> float:
        return self.began + self.start

    def begin(self, token: str, now: float) -> _Program:
        self.token, self.began, self.row_at = token, now, now
        self.done, self.rows, self.row_steps = 0.0, 0, 0
        return self

    def go_on(self, seconds: float, each: float, log_every: float, now: float) -> None:
        self.done += seconds * self.speed * each
        rows = int(self.done / self.speed / log_every) if log_every else 0
        if rows > self.rows:
            self.rows, self.row_at, self.row_steps = rows, now, int(self.done)


@dataclass
class Outcome:
    seconds: float = 0.0
    done: float = 0.0
    """Steps of all that have ended or were there at the end."""
    finished: int = 0
    failed: int = 0
    crowded: int = 0
    wanted: list[int] = field(default_factory=list)
    """Wherever it changed."""
    said: list[str] = field(default_factory=list)
    pack: Pack | None = None


def together(curve: Mapping[int, float], count: float) -> float:
    """The curve between its points."""
    if count in curve:
        return curve[int(count)]
    below = max(known for known in curve if known < count)
    above = min((known for known in curve if known > count), default=below)
    if above == below:
        return curve[below]
    return curve[below] + (curve[above] - curve[below]) * (count - below) / (above - below)


def simulate(sweep: Sweep, fixed: int | None = None, pack: Pack | None = None) -> Outcome:
    """Run it to its last trial, from one event to the next."""
    chance, outcome = random.Random(sweep.seed), Outcome()
    if fixed is None:
        pack = pack or Pack(sweep.most, outcome.said.append)
        outcome.pack, outcome.wanted = pack, [pack.wanted]
    queue = [_program(sweep, number) for number in range(sweep.trials)]
    running: list[_Program] = []
    now, look_at, started = BEGIN, BEGIN if pack is not None else math.inf, 0
    while (queue or running) and now - BEGIN < sweep.until:
        room = fixed or (pack.wanted if pack is not None else 1)
        while queue and len(running) < room:
            started += 1
            running.append(queue.pop(0).begin(str(started), now))
        at_work = [one for one in running if one.works_at <= now]
        load = sum(one.load for one in at_work)
        each = together(sweep.curve, load) / load if at_work else 1.0
        if pack is not None:
            each *= 1 + sweep.noise * chance.gauss(0, 1)
        ends = [now + (one.work - one.done) / (one.speed * each) for one in at_work]
        starts = [one.works_at for one in running if one.works_at > now]
        then = min([look_at, BEGIN + sweep.until, *ends, *starts])
        for program in at_work:
            program.go_on(then - now, each, sweep.log_every, then)
        now = then
        for program in [one for one in at_work if one.done >= one.work - 1e-6]:
            running.remove(program)
            outcome.finished += 1
            outcome.done += program.done
            if pack is not None:
                pack.ended(now, program.token)
        _run_out(sweep, running, queue, outcome, now, pack)
        if pack is not None and now >= look_at:
            # The sampler looks less often where that is dear.
            look_at = now + (5.0 if sweep.length > 300 else 2.0)
            readings = [_reading(one, now) for one in running]
            pack.look(now, readings, (sweep.total, 0), _use(sweep, load))
            if pack.wanted != outcome.wanted[-1]:
                outcome.wanted.append(pack.wanted)
    outcome.seconds = now - BEGIN
    outcome.done += sum(program.done for program in running)
    return outcome


def best_fixed(sweep: Sweep) -> tuple[float, int]:
    """The shortest time that a fixed number needs; the number."""
    numbers = [number for number in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32) if number <= sweep.most]
    found = [(simulate(sweep, fixed=number), number) for number in numbers]
    return min((one.seconds, number) for one, number in found if not one.failed)


def _program(sweep: Sweep, number: int) -> _Program:
    chance = random.Random(f"{sweep.seed} {number}")
    speed = 100 * math.exp(sweep.spread * chance.gauss(0, 1))
    times = 10 if chance.random() < sweep.large else 1
    load, longer = (sweep.large_load, sweep.large_seconds) if times > 1 else (1.0, 1.0)
    seconds = (sweep.length - sweep.start) * chance.uniform(0.8, 1.2) * longer
    start = sweep.start * chance.uniform(0.9, 1.2)
    return _Program(number, speed / times, seconds * speed / times, start, sweep.vram * times, load)


def _run_out(
    sweep: Sweep, running: list[_Program], queue: list[_Program], outcome: Outcome, now: float,
    pack: Pack | None,
) -> None:  # fmt: skip
    holding = [one for one in running if one.works_at <= now]
    while sum(one.vram for one in holding) > sweep.total:
        program = holding.pop()
        running.remove(program)
        if len(running):
            outcome.crowded += 1
            queue.insert(0, program)
            if pack is not None:
                pack.ran_out(program.token, max(1 + len(running), pack.wanted))
        else:
            outcome.failed += 1


def _reading(program: _Program, now: float) -> Reading:
    vram = program.vram if program.works_at <= now else 0
    return Reading(
        program.token, program.rows, program.row_at, vram, program.row_steps, began=program.began
    )


def _use(sweep: Sweep, load: float) -> float | None:
    return None if sweep.use_alone is None else min(1.0, sweep.use_alone * load)
