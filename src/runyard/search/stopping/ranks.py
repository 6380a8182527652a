"""Values of many trials at one point of their curves, in order."""

from __future__ import annotations

import bisect


class Ranks:
    """Smaller is better. A trial stands here once."""

    def __init__(self) -> None:
        self.sorted: list[tuple[float, int]] = []
        self.values: dict[int, float] = {}

    def __len__(self) -> int:
        return len(self.sorted)

    def add(self, trial: int, value: float) -> None:
        if trial not in self.values:
            self.values[trial] = value
            bisect.insort(self.sorted, (value, trial))

    def value_at(self, place: int) -> float:
        return self.sorted[place][0]
