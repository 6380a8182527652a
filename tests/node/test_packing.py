"""How many programs share a GPU, decided on simulated GPUs whose true speed is known."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from runyard.node.devices.packing import Pack, Reading
from runyard.node.devices.slot_shares import how_many_fit
from tests.node.recorded_driver import RECORDING
from tests.node.simulated_gpu import GIB, Sweep, best_fixed, simulate, together

# What so many programs get done together, one alone = 1, measured on an H200 or made up; and how
# busy one alone keeps the GPU.
CURVES: Mapping[str, tuple[Mapping[int, float], float | None]] = {
    "GPT, MPS": ({1: 1, 4: 3.64, 8: 6.9, 16: 6.4}, 0.35),
    "ResNet, MPS": ({1: 1, 4: 3.65, 8: 4.15, 16: 4.2}, 0.5),
    "CNN": ({1: 1, 2: 1.93, 4: 2.28, 8: 2.31, 16: 2.34}, 0.6),
    "CNN, MPS": ({1: 1, 2: 1.84, 4: 3.64, 8: 5.06, 16: 4.94}, 0.6),
    "MLP": ({1: 1, 2: 2.02, 4: 3.82, 8: 5.89, 16: 5.87}, 0.4),
    "MLP, MPS": ({1: 1, 2: 1.94, 4: 3.71, 8: 8, 16: 17.3}, None),
    "one fills it": ({1: 1, 2: 1.02, 4: 1.0, 8: 0.95, 16: 0.9}, 1.0),
    "two fill it": ({1: 1, 2: 1.7, 4: 1.72, 8: 1.6, 16: 1.5}, 0.8),
}
# Seconds of a trial, and how many there are: at its best number no sweep is over in five minutes.
LENGTHS = {30.0: 160, 120.0: 64, 600.0: 64}
SEEDS = range(10 if os.environ.get("RUNYARD_ALL_CUTS") else 1)


@pytest.mark.parametrize("length", LENGTHS)
def test_over_the_whole_sweep_it_does_as_much_as_the_best_number(length: float) -> None:
    """From the first trial to the last. The second sweep begins at its number; the luck of who
    ends last is worth a few percent, so it is judged over all curves together."""
    shares = []
    for seed in SEEDS:
        for name, (curve, use) in CURVES.items():
            sweep = Sweep(
                curve, length, trials=LENGTHS[length], use_alone=use, seed=seed, spread=0.1
            )
            first = simulate(sweep)
            assert first.finished == sweep.trials
            share = best_fixed(sweep)[0] / first.seconds
            assert share >= 0.9, (name, seed, first.wanted, first.said)
            assert first.pack is not None
            learnt, again = first.pack.learnt(), replace(sweep, seed=seed + 1000)
            assert learnt is not None, f"{name}: it never said that it knows its number"
            second = simulate(again, pack=Pack(sweep.most, learnt=learnt))
            shares.append(best_fixed(again)[0] / second.seconds)
            assert shares[-1] >= 0.94, (name, seed, second.wanted, learnt)
    assert sum(shares) / len(shares) >= 0.97, shares


@pytest.mark.parametrize("log_every", [0.0, 5.0])
@pytest.mark.parametrize("length", [30.0, 120.0])
def test_it_is_never_stuck_at_one_where_programs_say_little(
    length: float, log_every: float
) -> None:
    """They log nothing, or every five seconds: ends and the driver's figures are left."""
    sweep = Sweep(CURVES["GPT, MPS"][0], length, log_every=log_every, use_alone=0.3, trials=128)
    outcome = simulate(sweep)
    assert max(outcome.wanted) >= 8
    assert best_fixed(sweep)[0] / outcome.seconds >= 0.75, (outcome.wanted, outcome.said)


def test_long_programs_that_log_nothing_are_packed_by_how_busy_the_gpu_is() -> None:
    sweep = Sweep(CURVES["GPT, MPS"][0], 3600, log_every=0, use_alone=0.1, trials=32)
    assert simulate(sweep).wanted[:4] == [1, 2, 4, 8]


def test_large_models_among_small_ones_bring_it_down_and_none_is_lost() -> None:
    """Ten times the memory and the time: some run out beside others, and run again."""
    for seed in range(3):
        sweep = Sweep(CURVES["GPT, MPS"][0], vram=6 * GIB, large=0.1, seed=seed)
        outcome = simulate(sweep)
        assert (outcome.finished, outcome.failed) == (sweep.trials, 0)
        assert outcome.crowded <= sweep.trials / 4
        assert best_fixed(sweep)[0] / outcome.seconds >= 0.85, outcome.wanted


@pytest.mark.parametrize("vram", [GIB // 2, 6 * GIB])
@pytest.mark.parametrize("name", ["GPT, MPS", "CNN, MPS"])
def test_a_large_model_that_fills_the_gpu_says_nothing_about_the_small_ones(
    name: str, vram: int
) -> None:
    """Beside it all are slow, and so few seem to do as much as many. In the sweep after it, too."""
    curve, use = CURVES[name]
    for seed in range(3):
        sweep = Sweep(
            curve, 40, vram=vram, large=0.12, large_load=30, large_seconds=1, use_alone=use,
            seed=seed,
        )  # fmt: skip
        outcome = simulate(sweep)
        assert (outcome.finished, outcome.failed) == (sweep.trials, 0)
        assert best_fixed(sweep)[0] / outcome.seconds >= 0.9, outcome.wanted
        assert outcome.pack is not None
        again = replace(sweep, seed=seed + 100)
        second = simulate(again, pack=Pack(sweep.most, learnt=outcome.pack.learnt()))
        assert best_fixed(again)[0] / second.seconds >= 0.9, second.wanted


def test_what_once_misled_is_tried_again_where_the_gpu_has_time_to_spare() -> None:
    learnt = {
        "work": {"1": 1.0, "2": 2.0, "7": 1.5}, "by": "steps", "aim": 2.0,
        "starts": [12.0], "works": [20.0], "peaks": [2 * GIB], "total": 140 * GIB,
    }  # fmt: skip
    outcome = simulate(Sweep(CURVES["CNN, MPS"][0], 40), pack=Pack(16, learnt=learnt))
    assert outcome.wanted[0] < 6
    assert outcome.pack is not None
    assert outcome.pack.wanted >= 8, outcome.wanted


def test_trials_of_different_speed_do_not_mislead() -> None:
    """A slow trial beside a fast one is no slow-down: the same ones are compared first."""
    for seed in range(3):
        sweep = Sweep(CURVES["CNN, MPS"][0], 300, spread=0.7, seed=seed)
        outcome = simulate(sweep)
        assert outcome.pack is not None
        assert together(sweep.curve, min(16, outcome.pack.wanted)) >= 0.9 * 5.06, outcome.wanted


def test_who_logs_by_the_clock_is_judged_by_its_steps() -> None:
    """Rows come as often however many share the GPU; their steps tell."""
    pack, steps = Pack(4), dict.fromkeys("abcd", 0.0)
    for second in range(0, 120, 2):
        running = "abcd"[: pack.wanted]
        for token in running:
            steps[token] += 2 * 100 / len(running)
        pack.look(second, [Reading(one, 5 * second, second, 0, int(steps[one])) for one in running])
    assert pack.is_settled
    assert pack.wanted == 1
    assert "2 did not get more done" in pack.line or "4 did not get more done" in pack.line


def work(pack: Pack, seconds: range, count: int, each: float, done: dict[str, float]) -> None:
    """So many programs log `each` steps a second; `done` is what they have done so far."""
    for second in seconds:
        for number in range(count):
            done[f"p{number}"] = done.get(f"p{number}", 0.0) + each
        readings = [Reading(name, int(rows), second) for name, rows in done.items()]
        pack.look(second, readings, use=0.5)


def test_a_moment_in_which_more_seem_better_starts_none() -> None:
    """What has begun cannot be undone: with long trials, all of them stay for the sweep."""
    learnt = {
        "work": {"8": 8.0, "12": 7.8}, "by": "steps", "aim": 8.0,
        "starts": [15.0], "works": [600.0], "peaks": [GIB], "total": 140 * GIB,
    }  # fmt: skip
    pack, done = Pack(16, learnt=learnt), dict[str, float]()
    work(pack, range(20), 8, 10.0, done)
    # Four more, as when others were about to end; they are fast at first.
    seen = set()
    for second in range(20, 60):
        work(pack, range(second, second + 1), 12, 7.5 if second < 25 else 5.0, done)
        seen.add(pack.wanted)
    assert max(seen) < 16, seen
    work(pack, range(60, 120), 12, 9.0, done)
    assert pack.wanted == 16, "it lasts: then more are begun"


def test_its_line_compares_with_what_it_has_measured() -> None:
    """The first program was alone for too short a time to be compared with."""
    pack, done = Pack(16), dict[str, float]()
    work(pack, range(5), 1, 20.0, done)
    work(pack, range(5, 20), 8, 10.0, done)
    work(pack, range(20, 40), 12, 5.0, done)
    assert pack.line == "8 at a time (12 did not get more done: each at 50 % of its speed with 8)"


def test_memory_bounds_it() -> None:
    outcome = simulate(Sweep(CURVES["MLP, MPS"][0], 300, vram=40 * GIB, trials=24))
    assert max(outcome.wanted) == 3
    assert outcome.crowded == 0
    assert "no more fit its memory" in outcome.said[0]


def test_who_runs_out_of_memory_is_one_too_many_until_many_have_ended_well() -> None:
    said: list[str] = []
    pack = Pack(8, said.append)
    for second in range(0, 60, 2):
        running = "abcdefgh"[: pack.wanted]
        pack.look(second, [Reading(one, 10 * second, second) for one in running])
    assert pack.wanted == 8
    pack.ran_out("h", 8)
    assert pack.wanted == 7
    assert "one ran out of memory" in said[-1]
    pack.ran_out("b", 2)
    assert pack.wanted == 1
    for number in range(100):
        pack.ended(100 + number, "gone")
    pack.look(300, [Reading("a", 3000, 300)])
    assert pack.wanted > 1


def test_programs_that_grow_later_leave_room() -> None:
    pack = Pack(16)
    for second in range(0, 90, 2):
        vram = 20 * GIB if second > 70 else GIB
        running = [f"p{number}" for number in range(pack.wanted if second < 70 else 16)]
        readings = [Reading(one, 10 * second, second, vram) for one in running]
        pack.look(second, readings, (140 * GIB, 0))
        assert second != 68 or pack.wanted == 16
    assert pack.wanted == 6


def test_the_same_line_is_not_said_twice() -> None:
    """More fit the memory than it had expected: that changes nothing."""
    curve, use = CURVES["MLP, MPS"]
    said = simulate(Sweep(curve, 120, use_alone=use, trials=48)).said
    assert len(said) == len(set(said)), said


def test_what_it_does_is_one_line() -> None:
    outcome = simulate(Sweep(CURVES["CNN, MPS"][0], 120))
    assert len(outcome.said) <= 8
    assert all(" at a time" in line and "\n" not in line for line in outcome.said)
    assert any("did not get more done: together" in line for line in outcome.said)


def test_where_most_of_the_card_is_empty_a_smaller_one_is_suggested() -> None:
    pack = Pack(1)
    pack.look(0, [Reading("a", 9, 0, 2 * GIB)], (140 * GIB, 0))
    pack.look(8, [Reading("a", 99, 8, 2 * GIB)], (140 * GIB, 0))
    assert "2.0 of 140 GiB: a smaller GPU, or a slice of one" in pack.line


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
    recorded = PACKS[name]
    pack = Pack(8)
    for look in recorded["looks"]:
        readings = [Reading(*reading) for reading in look["readings"]]
        pack.look(look["now"], readings, (look["total"], look["others"]), look["use"])
    assert pack.is_settled
    assert pack.wanted == settles_at
    for count, done in pack.work.items():
        if count > 1:
            assert done == pytest.approx(slow_down(recorded, round(count)), rel=0.15)
    if settles_at == 1:
        (worse,) = [count for count in pack.work if count > 1]
        speed = 100 * pack.work[worse] / worse
        assert pack.line.startswith("1 at a time (2 did not get more done: together ")
        assert f"each at {speed:.0f} % of its speed" in pack.line
    assert pack.line.endswith("of 140 GiB: a smaller GPU, or a slice of one, may do as well")


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
