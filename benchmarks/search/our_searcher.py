"""Our engines, fed as the server feeds them."""

from __future__ import annotations

from collections import deque
from typing import Any

from runyard.search.engines.choose import make_engine
from runyard.search.engines.result import Result
from runyard.search.space import Point
from runyard.search.sweep import read_sweep


class OurSearcher:
    """Suggestions are made ahead, as the server does it, at the worst of what it allows.

    `ahead` suggestions lie ready; a claim takes the oldest, and another is made after it. So what
    is handed out was made `ahead` results ago.
    """

    def __init__(self, config: dict[str, Any], seed: int, ahead: int, method: str) -> None:
        sweep, problems = read_sweep(config)
        assert sweep is not None, problems
        self.space = sweep.space
        self.engine = make_engine(method, sweep.space, seed, 1)
        self.ahead = ahead
        self.ready: deque[Point] = deque()
        self.running: dict[int, Point] = {}
        self.made = 0

    def fill(self, wanted: int) -> None:
        while len(self.ready) < wanted:
            pending = [*self.running.values(), *self.ready]
            self.ready.extend(self.engine.suggest(pending, 1, self.made))
            self.made += 1

    def ask(self, trial: int) -> dict[str, Any]:
        self.fill(1)
        self.running[trial] = self.ready.popleft()
        self.fill(self.ahead)
        return self.space.decode(self.running[trial])

    def tell(self, trial: int, value: float) -> None:
        point = self.running.pop(trial)
        self.engine.add([Result(trial, point, (value,), ())])
