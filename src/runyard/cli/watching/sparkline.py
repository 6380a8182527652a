"""A curve in one line of text."""

from __future__ import annotations

import sys
from collections.abc import Sequence

_BLOCKS = "▁▂▃▄▅▆▇█"
_PLAIN = "_.-~=+*#"


def sparkline(values: Sequence[float | None], *, plain: bool = False) -> str:
    """One character a value, from the lowest to the highest; a gap where there is none."""
    marks = _PLAIN if plain else _BLOCKS
    known = [value for value in values if value is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    # Halved, so that the range of the two largest numbers there are is still a number.
    span = high / 2 - low / 2
    return "".join(" " if value is None else marks[_level(value, low, span)] for value in values)


def thinned(values: Sequence[float | None], most: int) -> list[float | None]:
    """At most so many of the values, evenly spread, the last one always among them."""
    count = min(most, len(values))
    return [values[(place + 1) * len(values) // count - 1] for place in range(count)]


def _level(value: float, low: float, span: float) -> int:
    top = len(_BLOCKS) - 1
    if span == 0:
        return top // 2
    return min(top, int((value / 2 - low / 2) / span * (top + 1)))


def terminal_is_plain() -> bool:
    """Whether our output cannot show block characters."""
    try:
        _BLOCKS.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return True
    return False
