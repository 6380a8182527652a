"""Our engines, fed as the server feeds them where trials take longer than a fit."""

from __future__ import annotations

from typing import Any, NamedTuple

from runyard.search.by_number import quasi_random
from runyard.search.engines.choose import make_engine
from runyard.search.engines.result import Result
from runyard.search.space import Point
from runyard.search.sweep import read_sweep
from runyard.server.sweeps.policy import ahead


class Ready(NamedTuple):
    point: Point
    knows: int


class OurSearcher:
    """Suggestions are made ahead, by the server's rules (`server/sweeps/serving/suggestions.py`).

    A trial's end and the claim for the next come together, so what is handed out does not know of
    the result that has just come in. Then all that lies ready is made anew. Who works alone waits
    for one that knows everything. Of those made anew, only the first is used before the next
    result: the others, which do not change it, are not made here.
    """

    def __init__(self, config: dict[str, Any], seed: int, workers: int, method: str) -> None:
        sweep, problems = read_sweep(config)
        assert sweep is not None, problems
        self.space = sweep.space
        self.seed = seed
        self.is_alone = workers == 1
        self.engine = make_engine(method, sweep.space, seed, 1)
        self.ready: list[Ready] = []
        self.running: dict[int, Point] = {}
        self.results = 0

    def ask(self, trial: int) -> dict[str, Any]:
        point = self._point(trial)
        self.running[trial] = point
        if self.results and not self.is_alone:
            self._fill(trial + 1)
        return self.space.decode(point)

    def _point(self, trial: int) -> Point:
        if self.is_alone and self.results:
            return self.engine.suggest([], 1, trial)[0]
        at_work = len(self.running)
        usable = [one for one in self.ready if not ahead.is_stale(one.knows, self.results, at_work)]
        if usable:
            best = max(usable, key=lambda one: one.knows)
            self.ready.remove(best)
            return best.point
        return self.space.place(quasi_random(len(self.space.leaves), self.seed, trial))

    def _fill(self, setting: int) -> None:
        (point,) = self.engine.suggest(list(self.running.values()), 1, setting)
        self.ready = [Ready(point, self.results)]

    def tell(self, trial: int, value: float) -> None:
        point = self.running.pop(trial)
        self.engine.add([Result(trial, point, (value,), ())])
        self.results += 1
