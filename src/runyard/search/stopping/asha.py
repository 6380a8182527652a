"""Asynchronous successive halving, judged on every report.

Rungs are at min_iter, min_iter * eta, ... below max_iter. At a rung, the best 1/eta of the trials
that have reached it continue, and at least one.

The stopping form ends the others. A trial that reached a rung early, when there was little to
compare it with, is judged again at its next reports.
The promotion form pauses a trial that is not among the best when it reaches a rung. It continues
when enough worse trials have reached the rung, so that it is one of the best.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from runyard.search.early_terminate import Asha
from runyard.search.stopping.decision import LONGEST, Decision, Ranks


def rungs_of(rule: Asha) -> list[int]:
    end = rule.max_iter if rule.max_iter is not None else LONGEST
    rungs: set[int] = set()
    size = float(rule.min_iter)
    while size < end:
        rungs.add(int(size))
        size *= rule.eta
    return sorted(rungs)


class AshaStopper:
    def __init__(self, rule: Asha, maximize: bool = False) -> None:
        self.eta = rule.eta
        self.can_pause = rule.form == "promotion"
        self.sign = -1.0 if maximize else 1.0
        self.rungs = rungs_of(rule)
        self.ranks = [Ranks() for _ in self.rungs]
        self.reached: dict[int, int] = {}  # of each trial, how many rungs
        self.indexes: dict[int, float] = {}
        self.paused: set[int] = set()

    def report(self, trial: int, index: float, value: float) -> Decision:
        before = self.reached.get(trial, 0)
        self.note(trial, index, value)
        reached = self.reached.get(trial, 0)
        if not reached or self.is_among_best(trial, reached - 1):
            return Decision.GO_ON
        if not self.can_pause:
            return Decision.STOP
        if reached == before and trial not in self.paused:
            return Decision.GO_ON  # it was promoted from here, which is valid until the next rung
        self.paused.add(trial)
        return Decision.PAUSE

    def note(self, trial: int, index: float, value: float) -> None:
        if not math.isfinite(value) or index <= self.indexes.get(trial, -math.inf):
            return
        self.indexes[trial] = index
        reached = self.reached.get(trial, 0)
        while reached < len(self.rungs) and index >= self.rungs[reached]:
            self.ranks[reached].add(trial, value * self.sign)
            reached += 1
        self.reached[trial] = reached

    def is_among_best(self, trial: int, rung: int) -> bool:
        ranks = self.ranks[rung]
        worst_kept = ranks.value_at(self.kept(rung) - 1)
        return ranks.values[trial] <= worst_kept

    def kept(self, rung: int) -> int:
        return max(1, int(len(self.ranks[rung]) / self.eta))

    def restore(self, trial: int, curve: Sequence[tuple[float, float]], is_paused: bool) -> None:
        for index, value in curve:
            self.note(trial, index, value)
        if is_paused and self.can_pause:
            self.paused.add(trial)

    def ended(self, trial: int) -> None:
        self.paused.discard(trial)

    def promotable(self) -> int | None:
        """The best paused trial of the highest rung at which it is among the best 1/eta."""
        if not self.paused:
            return None
        for rung in reversed(range(len(self.rungs))):
            for _, trial in self.ranks[rung].sorted[: self.kept(rung)]:
                if trial in self.paused and self.reached[trial] == rung + 1:
                    return trial
        return None

    def resumed(self, trial: int) -> None:
        self.paused.discard(trial)
