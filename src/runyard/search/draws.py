"""Points that depend only on a seed and a number: random, or spread evenly."""

from __future__ import annotations

import hashlib
import struct
from functools import lru_cache


def draws(seed: int, number: int, count: int) -> list[float]:
    """Draws from [0, 1) for a number; always the same, on every machine."""
    numbers: list[float] = []
    while len(numbers) < count:
        text = f"{seed} {number} {len(numbers)}".encode()
        words = struct.unpack("<8Q", hashlib.blake2b(text).digest())
        numbers += [(word >> 11) * 2.0**-53 for word in words]
    return numbers[:count]


def quasi_random(dimensions: int, seed: int, number: int) -> list[float]:
    """Point `number` of an additive recurrence: spread evenly from the first one on.

    Each coordinate advances by a power of the root of x^(d+1) = x + 1; the seed gives the start.
    """
    starts = draws(seed, -1, dimensions)
    steps = _steps(dimensions)
    return [(start + (number + 1) * step) % 1.0 for start, step in zip(starts, steps, strict=True)]


@lru_cache(64)
def _steps(dimensions: int) -> list[float]:
    root = 2.0
    for _ in range(40):
        root = (1.0 + root) ** (1.0 / (dimensions + 1))
    return [root**-power for power in range(1, dimensions + 1)]
