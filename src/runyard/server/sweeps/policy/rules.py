"""What an end of a trial needs to know of its sweep, in a form that a row of the store holds."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any


@dataclass(frozen=True)
class Aim:
    """A metric that the search looks at."""

    name: str
    maximize: bool = False
    target: float | None = None
    impute: str | None = None

    def lowered(self, value: float) -> float:
        """The value as something to be made small."""
        return -value if self.maximize else value

    def is_reached_by(self, value: float) -> bool:
        return self.target is not None and self.lowered(value) <= self.lowered(self.target)


@dataclass(frozen=True)
class Limit:
    """A metric that has to stay below a bound, or above it."""

    name: str
    bound: float
    above: bool = False

    def excess(self, value: float) -> float:
        """By how much it is broken; at most zero if it is kept."""
        return self.bound - value if self.above else value - self.bound


@dataclass(frozen=True)
class Rules:
    aims: tuple[Aim, ...] = ()
    limits: tuple[Limit, ...] = ()
    retries: Mapping[str, int] = field(default_factory=dict)
    # How many trials one setting has.
    seeds: int = 1
    retry_failed: bool = False
    stop_after_failures: int = 5
    # Whether trials are paused, to go on when they turn out to be among the best.
    promotes: bool = False
    # What becomes of a trial whose metric is NaN or infinite for good: stop, or keep.
    nan: str = "stop"
    # Whether new trials are drawn here, and not by a controller or scheduler on somebody's machine.
    draws: bool = True

    def as_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    @lru_cache(256)
    def read(text: str) -> Rules:
        """As `as_json` wrote it. Every claim and every end asks for the same few."""
        content: dict[str, Any] = json.loads(text)
        return Rules(
            **{
                **content,
                "aims": tuple(Aim(**aim) for aim in content["aims"]),
                "limits": tuple(Limit(**limit) for limit in content["limits"]),
            }
        )

    def score(self, measured: Mapping[str, float]) -> float | None:
        """By what trials are ranked, lower is better; None if it has no place in the ranking."""
        if not self.aims or self.aims[0].name not in measured or not self.keeps_limits(measured):
            return None
        return self.aims[0].lowered(measured[self.aims[0].name])

    def keeps_limits(self, measured: Mapping[str, float]) -> bool:
        return all(
            limit.excess(measured.get(limit.name, math.inf if not limit.above else -math.inf)) <= 0
            for limit in self.limits
        )

    def has_target(self, measured: Mapping[str, float]) -> bool:
        aims = [aim for aim in self.aims if aim.target is not None]
        return bool(aims) and all(
            aim.name in measured and aim.is_reached_by(measured[aim.name]) for aim in aims
        )
