"""In which order runs are listed, and how a page is found again.

A cursor holds where the last page ended: the value that the order is by, and the run's key. So
pages stay right when runs come and go in between. Runs without the value come last, whichever way.
"""

from __future__ import annotations

import bisect
import json
import math
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Any, TypeVar

from runyard.server.history.reading.dotted_names import MISSING
from runyard.server.listing.field_paths import Field, UnknownField, find_field

_NUMBER, _WORDS, _OTHER = 0, 1, 2
_LARGEST = 2**63 - 1

# What kind of value it is, and the value: numbers before texts before the rest.
Rank = tuple[int, Any]
Entry = TypeVar("Entry", int, tuple[Rank, int])
CREATED = find_field("created_at")


class BadOrder(ValueError):
    """An order or a cursor that cannot be followed."""


@dataclass(frozen=True)
class Order:
    field: Field
    descending: bool


@dataclass(frozen=True)
class Place:
    """Where a run stands in an order; `rank` is None where it has no such value."""

    rank: Rank | None
    key: int


def read_order(text: str | None) -> Order:
    """`+created_at`, `-summary_metrics.loss`, ...; without a sign upwards, the oldest first."""
    # Clients may name several; the first decides, and ties go by age.
    first = (text or "+created_at").split(",")[0].strip()
    try:
        return Order(find_field(first.lstrip("+-")), first.startswith("-"))
    except UnknownField as error:
        raise BadOrder(f"the order is not known: {error}") from error


def rank_of(value: Any) -> Rank | None:
    if value is MISSING or value is None:
        return None
    if isinstance(value, int | float):  # Truths are the numbers 0 and 1.
        number = float(value) if isinstance(value, int) and abs(value) > _LARGEST else value
        # NaN and the infinities are nobody's best: as if there were no value.
        return (_NUMBER, number) if math.isfinite(number) else None
    if isinstance(value, str):
        return _WORDS, value
    return _OTHER, json.dumps(value, sort_keys=True)


def write_cursor(place: Place) -> str:
    return json.dumps([place.rank, place.key], separators=(",", ":"))


def read_cursor(text: str | None) -> Place | None:
    if not text:
        return None
    try:
        rank, key = json.loads(text)
        if type(key) is not int or abs(key) > _LARGEST:
            raise ValueError("no key")
        if rank is None:
            return Place(None, key)
        kind, value = rank
        if kind == _NUMBER:
            fits = isinstance(value, int | float) and not math.isnan(value)
        else:
            fits = kind in (_WORDS, _OTHER) and isinstance(value, str)
        if not fits or isinstance(kind, bool):
            raise ValueError("no rank")
    except (ValueError, TypeError, RecursionError, OverflowError) as error:
        raise BadOrder(f"{text[:60]!r} is not a cursor of ours") from error
    return Place((kind, value), key)


class Ordered:
    """Runs in the order of a field: by their values, then those that have none; equals by age."""

    def __init__(self, places: Iterable[Place]) -> None:
        ranked, others = list[tuple[Rank, int]](), list[int]()
        for place in places:
            if place.rank is None:
                others.append(place.key)
            else:
                ranked.append((place.rank, place.key))
        self._ranked, self._others = sorted(ranked), sorted(others)

    def __len__(self) -> int:
        return len(self._ranked) + len(self._others)

    def replaced(self, keys: Set[int], places: Iterable[Place]) -> Ordered:
        """The same with those runs at these places instead; a run without one leaves the list."""
        stay = [Place(rank, key) for rank, key in self._ranked if key not in keys]
        stay += [Place(None, key) for key in self._others if key not in keys]
        return Ordered((*stay, *places))

    def page(self, after: Place | None, count: int, *, descending: bool) -> list[Place]:
        """The next `count` places behind `after`."""
        page: list[Place] = []
        if after is None or after.rank is not None:
            mark = None if after is None or after.rank is None else (after.rank, after.key)
            page = [
                Place(rank, key) for rank, key in _behind(self._ranked, mark, count, descending)
            ]
        if len(page) < count:
            last = after.key if after is not None and after.rank is None else None
            keys = _behind(self._others, last, count - len(page), descending)
            page += [Place(None, key) for key in keys]
        return page


def _behind(
    ordered: Sequence[Entry], mark: Entry | None, count: int, descending: bool
) -> Sequence[Entry]:
    """The next `count` entries behind the mark, or from where the order begins."""
    if descending:
        stop = len(ordered) if mark is None else bisect.bisect_left(ordered, mark)
        return ordered[max(0, stop - count) : stop][::-1]
    start = 0 if mark is None else bisect.bisect_right(ordered, mark)
    return ordered[start : start + count]
