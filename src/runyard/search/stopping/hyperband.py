"""W&B's hyperband, exactly: a stopping rule over bands of logged values.

An iteration is the number of finite values of the metric. At a band, all trials of the sweep that
reached it are compared, in any state; the threshold is the value at index floor(n / eta) of the n,
the best first. A running trial is judged at the largest band it passed, and stopped if it is
strictly worse than the threshold: `strict` by its value at the band, else by its best so far.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from runyard.search.early_terminate import Hyperband
from runyard.search.stopping.decision import LONGEST, Decision, Ranks

BANDS = 100


def bands_of(rule: Hyperband) -> list[int]:
    """The counts at which trials are compared, ascending. `max_iter` wins over `min_iter`."""
    # Step by step, as W&B does it: a power would round differently.
    bands: set[int] = set()
    if rule.max_iter is not None and rule.s is not None:
        size = float(rule.max_iter)
        for _ in range(rule.s):
            size /= rule.eta
            if size < 1:
                break
            bands.add(int(size))
        return sorted(bands)
    size = rule.min_iter or 1
    for _ in range(BANDS):
        if size > LONGEST:
            break
        bands.add(int(size))
        size *= rule.eta
    return sorted(bands)


def place_of_threshold(count: int, eta: float) -> int:
    return int((1.0 / eta) * count)  # in this order, as W&B rounds


def judge(
    curves: Mapping[int, Sequence[float]],
    running: Collection[int],
    rule: Hyperband,
    maximize: bool = False,
) -> set[int]:
    """Which of the running trials to stop, from the logged values only."""
    stopper = HyperbandStopper(rule, maximize)
    for trial, curve in curves.items():
        finite = [value for value in curve if math.isfinite(value)]
        stopper.restore(trial, list(enumerate(finite, 1)), is_paused=False)
    return {trial for trial in running if stopper.is_beaten(trial)}


class HyperbandStopper:
    def __init__(self, rule: Hyperband, maximize: bool = False) -> None:
        self.rule = rule
        self.sign = -1.0 if maximize else 1.0
        self.bands = bands_of(rule)
        self.ranks = [Ranks() for _ in self.bands]
        self.passed: dict[int, int] = {}  # of each trial, how many bands
        self.counts: dict[int, float] = {}
        self.best: dict[int, float] = {}

    def report(self, trial: int, index: float, value: float) -> Decision:
        self.note(trial, index, value)
        return Decision.STOP if self.is_beaten(trial) else Decision.GO_ON

    def note(self, trial: int, index: float, value: float) -> None:
        if not math.isfinite(value) or index <= self.counts.get(trial, 0):
            return
        value *= self.sign
        self.counts[trial] = index
        self.best[trial] = min(value, self.best.get(trial, math.inf))
        passed = self.passed.get(trial, 0)
        while passed < len(self.bands) and index >= self.bands[passed]:
            self.ranks[passed].add(trial, value)
            passed += 1
        self.passed[trial] = passed

    def is_beaten(self, trial: int) -> bool:
        passed = self.passed.get(trial, 0)
        if not passed:
            return False
        ranks = self.ranks[passed - 1]
        threshold = ranks.value_at(place_of_threshold(len(ranks), self.rule.eta))
        return (ranks.values[trial] if self.rule.strict else self.best[trial]) > threshold

    def restore(self, trial: int, curve: Sequence[tuple[float, float]], is_paused: bool) -> None:
        del is_paused  # nothing is ever paused by this rule
        for index, value in curve:
            self.note(trial, index, value)

    def ended(self, trial: int) -> None:
        del trial  # a trial counts in any state

    def promotable(self) -> int | None:
        return None

    def resumed(self, trial: int) -> None:
        del trial
