"""What sections are made of: words, tables, and figures as they are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from runyard.reading.units import memory_text, number


@dataclass(frozen=True)
class Table:
    """`name` is for files and links; the columns of `numbers` stand to the right."""

    name: str
    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Section:
    """One question and its answer: words, points of a list, tables, and the names of plots."""

    title: str
    words: tuple[str, ...] = ()
    points: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    plots: tuple[str, ...] = ()


def measure(mean: float, deviation: float | None) -> str:
    """A deviation of a few seeds has two digits that mean something."""
    return number(mean) if deviation is None else f"{number(mean)} ± {deviation:.2g}"


def hours(seconds: float) -> str:
    """In hours, as short as they can be said."""
    value = seconds / 3600
    if 0 < value < 0.005:
        return "<0.01"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def share(part: float | None, whole: float | None) -> str:
    """A part of a whole; a dash where either is not known."""
    return "-" if part is None or not whole else f"{100 * part / whole:.0f} %"


def memory(count: float) -> str:
    return memory_text(int(count))


def maybe(say: Callable[[float], str], value: float | None) -> str:
    return "-" if value is None else say(value)
