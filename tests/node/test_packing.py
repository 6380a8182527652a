"""How many programs share a GPU, decided on simulated GPUs whose true speed is known."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from runyard.node.packing import Pack, Reading
from runyard.node.shares import how_many_fit

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
    assert "4 at a time (8 did not get more done)" in gpu.said[0]
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
