"""How many programs share a GPU, decided on simulated GPUs whose true speed is known."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest

from runyard.node.devices.packing import Pack, Reading
from runyard.node.devices.slot_shares import how_many_fit
from tests.node.recorded_driver import RECORDING

GIB = 1 << 30
# What so many programs get done together, one alone = 1: measured on an H200.
CURVES: Mapping[str, Mapping[int, float]] = {
    "small CNN": {1: 1, 2: 2, 4: 3.8, 8: 3.8, 16: 3.8},
    "small CNN, MPS": {1: 1, 2: 2, 4: 3.8, 8: 6.4, 16: 6.9},
    "small MLP": {1: 1, 2: 1.9, 4: 3.5, 8: 6, 16: 8.9},
    "small MLP, MPS": {1: 1, 2: 2.2, 4: 4.6, 8: 9.3, 16: 18.9},
    "one fills it": {1: 1, 2: 1.02, 4: 1.0, 8: 0.95, 16: 0.9},
}


def together(curve: Mapping[int, float], count: int) -> float:
    """The curve between its points."""
    if count in curve:
        return curve[count]
    below = max(known for known in curve if known < count)
    above = min((known for known in curve if known > count), default=below)
    if above == below:
        return curve[below]
    return curve[below] + (curve[above] - curve[below]) * (count - below) / (above - below)


class Gpu:
    """A GPU on which every free place is taken at once; a look at it every two seconds."""

    def __init__(
        self, curve: Mapping[int, float], most: int = 16, *, length: float = 600.0,
        noise: float = 0.0, spread: float = 0.0, vram: int = GIB, logs: bool = True, seed: int = 0,
    ) -> None:  # fmt: skip
        self.curve, self.vram, self.logs = curve, vram, logs
        self.length, self.noise, self.spread = length, noise, spread
        self.said: list[str] = []
        self.pack = Pack(most, self.said.append)
        self.changes = [1]
        self._random = random.Random(seed)
        self._running: dict[str, list[float]] = {}
        self._began = 0
        self._now = 0.0

    def run(self, seconds: float) -> Gpu:
        end = self._now + seconds
        while self._now < end:
            self._fill()
            self._work()
            readings = [
                Reading(token, int(done) if self.logs else 0, at, self.vram)
                for token, (_, done, _, _, at) in self._running.items()
            ]
            self.pack.look(self._now, readings, (140 * GIB, 0))
            if self.pack.wanted != self.changes[-1]:
                self.changes.append(self.pack.wanted)
        return self

    def _fill(self) -> None:
        while len(self._running) < self.pack.wanted:
            self._began += 1
            speed = 5 * (1 + self.spread * self._random.uniform(-1, 1))
            work = self.length * speed * self._random.uniform(0.7, 1.3)
            self._running[str(self._began)] = [self._now, 0.0, speed, work, self._now]

    def _work(self) -> None:
        count = len(self._running)
        each = together(self.curve, count) / count
        self._now += 2.0
        for token, one in list(self._running.items()):
            if self._now - one[0] >= 10:  # It has been importing.
                one[1] += 2 * one[2] * each * (1 + self._random.gauss(0, self.noise))
                one[4] = self._now
            if one[1] >= one[3]:
                del self._running[token]
                self.pack.ended(self._now)


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("length", [600.0, 60.0, 20.0])
def test_it_finds_a_number_that_gets_nearly_the_most_done(name: str, length: float) -> None:
    curve = CURVES[name]
    best = max(together(curve, count) for count in range(1, 17))
    for seed in range(5):
        gpu = Gpu(curve, length=length, noise=0.05, spread=0.5, seed=seed).run(3600)
        assert together(curve, gpu.pack.wanted) >= 0.9 * best, (seed, gpu.changes)


def test_it_doubles_and_settles_once() -> None:
    gpu = Gpu(CURVES["small CNN"]).run(1800)
    assert gpu.changes == [1, 2, 4, 8, 4]
    assert len(gpu.said) == 1
    assert "4 at a time (8 did not get more done: " in gpu.said[0]
    assert "together 3.8 times" in gpu.said[0]
    assert "each at 95 % of its speed" in gpu.said[0]


def test_what_was_found_stays() -> None:
    gpu = Gpu(CURVES["small CNN"], noise=0.2).run(1800)
    settled = gpu.changes.copy()
    gpu.curve = CURVES["one fills it"]
    assert gpu.run(3600).changes == settled


def test_trials_of_different_speed_do_not_mislead() -> None:
    """A slow trial beside a fast one is no slow-down: only the same ones are compared."""
    found = {Gpu(CURVES["small CNN, MPS"], spread=0.9, seed=seed).run(1800).pack.wanted
             for seed in range(10)}  # fmt: skip
    assert found == {16}


def test_who_logs_by_the_clock_is_judged_by_its_steps() -> None:
    """Rows come as often however many share the GPU; their steps tell."""
    pack, speed = Pack(4), {1: 100.0, 2: 50.0}
    steps = {"a": 0.0, "b": 0.0}
    for second in range(0, 120, 2):
        running = ["a", "b"][: pack.wanted]
        for token in running:
            steps[token] += 2 * speed[len(running)]
        pack.look(second, [Reading(one, 5 * second, second, 0, int(steps[one])) for one in running])
    assert pack.is_settled
    assert pack.wanted == 1


def test_programs_that_log_nothing_are_counted_as_they_end() -> None:
    gpu = Gpu(CURVES["small CNN"], length=30, logs=False).run(7200)
    assert gpu.pack.is_settled
    assert together(gpu.curve, gpu.pack.wanted) == 3.8


def test_memory_bounds_it() -> None:
    gpu = Gpu(CURVES["small MLP, MPS"], vram=40 * GIB).run(600)
    assert gpu.changes == [1, 2, 3]
    assert "no more fit its memory" in gpu.said[0]


def test_who_runs_out_of_memory_is_one_too_many() -> None:
    gpu = Gpu(CURVES["small MLP, MPS"]).run(60)
    together_then = gpu.pack.wanted
    assert together_then > 2
    gpu.pack.ran_out(together_then)
    assert gpu.pack.wanted == together_then - 1
    assert "one ran out of memory" in gpu.said[0]
    gpu.run(1800)
    assert gpu.pack.wanted == together_then - 1
    gpu.pack.ran_out(2)
    assert gpu.pack.wanted == 1


def test_programs_that_grow_later_leave_room() -> None:
    gpu = Gpu(CURVES["small MLP, MPS"]).run(1800)
    assert gpu.pack.wanted == 16
    gpu.vram = 20 * GIB
    assert gpu.run(10).pack.wanted == 6


def test_where_most_of_the_card_is_empty_a_smaller_one_is_suggested() -> None:
    gpu = Gpu(CURVES["one fills it"], vram=2 * GIB).run(600)
    assert gpu.pack.wanted == 1
    assert "2.0 of 140 GiB: a smaller GPU, or a slice of one" in gpu.said[0]


# What the driver and the programs of a real H200 told while a pack decided on them.
PACKS = {
    "small": RECORDING["pack small"],
    "large": RECORDING["pack large"],
    "small, MPS": RECORDING["mps"]["pack"],
}


def slow_down(recorded: dict[str, Any], count: int) -> float:
    """What so many did together over what one did alone, counted without the pack's own rules: the
    steps of the program that was there first."""

    def rate(together: int) -> float:
        rows = [look for look in recorded["looks"] if len(look["readings"]) == together]
        (_, _, began, _, before), (_, _, ended, _, after) = (
            rows[place]["readings"][0] for place in (1, -1)
        )
        return float((after - before) / (ended - began))

    return count * rate(count) / rate(1)


@pytest.mark.parametrize(("name", "settles_at"), [("small", 1), ("large", 1), ("small, MPS", 8)])
def test_on_a_real_gpu_it_packs_where_that_pays_and_tells_the_slow_down(
    name: str, settles_at: int
) -> None:
    """Taking turns, two programs that are always busy did less than one; with MPS eight small ones
    did eight times as much."""
    recorded, said = PACKS[name], list[str]()
    pack = Pack(8, said.append)
    for look in recorded["looks"]:
        readings = [Reading(*reading) for reading in look["readings"]]
        pack.look(look["now"], readings, (look["total"], look["others"]))
        assert pack.wanted == look["wanted"]
    assert pack.is_settled
    assert pack.wanted == settles_at
    assert pack.work == {int(count): work for count, work in recorded["work"].items()}
    for count in pack.work.keys() - {1}:
        assert pack.work[count] == pytest.approx(slow_down(recorded, count), rel=0.15)
    (line,) = said
    speed = 100 * pack.work[max(pack.work)] / max(pack.work)
    assert f"each at {speed:.0f} % of its speed" in line
    if settles_at == 1:
        assert line.startswith("1 at a time (2 did not get more done: together ")
    assert line.endswith("of 140 GiB: a smaller GPU, or a slice of one, may do as well")


@pytest.mark.parametrize(
    ("total", "peak", "usable", "fit"),
    [
        (40, 1.8, 1.0, 20),  # 1.8 is counted as 2.
        (40, 3.0, 0.9, 12),
        (40, 39.0, 0.9, 1),
        (40, 80.0, 0.9, 1),
        (40, 0.25, 0.9, 120),
    ],
)
def test_how_many_fit_a_gpu(total: int, peak: float, usable: float, fit: int) -> None:
    assert how_many_fit(total * GIB, int(peak * GIB), usable) == fit
