"""Rows put where they belong by what they say, not by the number they come with.

`wandb sync` numbers the rows of one process from zero, or from where the run ends, whatever the run
has already. So a row is known by its step and its time: one that is there is passed over, a new
one goes where its step is. Segments of one run may then come in any order, overlap, and come again.
Rows that a rewind put aside are known as well: what the run logged instead stands in their place.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any

import numpy as np
import numpy.typing as npt

from runyard.server.history import pieces
from runyard.server.history.columns import FLOAT, INTEGER, Column, Numbers, decode, encode, pick
from runyard.server.history.history import HISTORY, count_rows, stream_of
from runyard.server.history.metric_keys import known_keys, number_keys
from runyard.server.history.pieces import Extent
from runyard.server.history.unrepeated import unrepeated_rows
from runyard.server.runs import runs
from runyard.server.store.store import Changed, Slice, Transfer

Flags = npt.NDArray[np.bool_]
# (step, time); a row that says neither comes first.
Place = tuple[float, float]


class Merge(Transfer):
    """Adds the rows that are not there yet, in the order of their steps (events: of time).

    Rows behind a new one make room: they get higher numbers, unless there is a gap. That is done
    piece by piece, the last one first, so that no two rows ever have one number.
    """

    def __init__(
        self, run: int, stream: int, lines: Sequence[str], *, goes_back: bool = False
    ) -> None:
        """`goes_back`: the rows come out of an archive themselves."""
        self._run, self.stream, self._goes_back = run, stream, goes_back
        self._rows = {_place(line, stream): line for line in lines}
        self._due: list[_Part] | None = None
        self._count = 0

    def restart(self) -> None:
        self._due = None

    def plan(self, db: Connection) -> Slice | None:
        if self._due is None:
            try:
                self._due = self._look(db)
            except _NewKeys as error:
                return error.add
            self._count = count_rows(db, self._run, self.stream)
        if not self._due:
            return None
        part = self._due.pop()
        columns = part.added
        if part.extent is not None:
            own = pieces.columns_of(db, self._run, self.stream, part.extent)
            places = [np.searchsorted(part.numbers, column.lines) for column in own]
            moved = [column.at(part.targets[to]) for column, to in zip(own, places, strict=True)]
            columns = [*moved, *columns]
        made = pieces.make(db, columns)
        before, self._count = self._count, max([self._count, *(piece.stop for piece in made)])

        def merge(db: Connection) -> None:
            if count_rows(db, self._run, self.stream) != before:
                raise Changed(f"rows were added to run {self._run}")
            extents = [] if part.extent is None else [part.extent]
            pieces.replace(db, self._run, self.stream, extents, made)

        return merge

    def _look(self, db: Connection) -> list[_Part]:
        """What is to be replaced, in the order of rows."""
        extents = pieces.extents(db, self._run, self.stream)
        numbers, known = self._present(db, extents)
        fresh = self._fresh(db, known)
        if not fresh:
            return []
        wanted = _as_places(fresh)
        # Before which of the present rows each goes.
        before = np.searchsorted(np.maximum.accumulate(known), wanted, side="right")
        targets, new_numbers = _make_room(numbers, before)
        lines = list(fresh.values())
        added = _encoded(db, lines, new_numbers)
        due: list[_Part] = []
        taken = 0
        for extent in extents:
            first, last = np.searchsorted(numbers, (extent.start, extent.stop))
            if last == first:
                continue
            # New rows go with the piece that has the row before which they stand.
            until = int(np.searchsorted(before, last - 1, side="right"))
            old, new = numbers[first:last], targets[first:last]
            if until > taken or (old != new).any():
                part = [pick(column, new_numbers[taken:until]) for column in added]
                due.append(_Part(extent, part, old, new))
            taken = until
        if taken < len(fresh):
            part = [pick(column, new_numbers[taken:]) for column in added]
            due.append(_Part(None, part, numbers[:0], numbers[:0]))
        return due

    def _fresh(self, db: Connection, known: Numbers) -> dict[Place, str]:
        """The rows that are not there yet, in their order."""
        wanted = _as_places(self._rows)
        is_known = np.isin(wanted, known)
        if not (self._goes_back or is_known.all()):
            is_known |= self._are_rewound(db, wanted)
        rows = list(self._rows.items())
        fresh = sorted(rows[place] for place in np.flatnonzero(~is_known).tolist())
        run = runs.by_key(db, self._run)
        is_trial = run is not None and run["sweep"] is not None
        if fresh and is_trial and self.stream == HISTORY and not self._goes_back:
            # Of a program that went on and did not log them again.
            back = unrepeated_rows(db, self._run, fresh[0][1])
            fresh = sorted([*((_place(line, HISTORY), line) for line in back), *fresh])
        return dict(fresh)

    def _are_rewound(self, db: Connection, wanted: Numbers) -> Flags:
        """Which of these places are of rows that a rewind put aside; archive by archive, and piece
        by piece, since together they may have many times the rows of the run.
        """
        found = np.zeros(len(wanted), bool)
        for archive in db.execute(
            "SELECT number FROM archives WHERE run = ? AND reason = 'rewound'", (self._run,)
        ).fetchall():
            stream = stream_of(archive["number"], self.stream)
            for _, steps, times in _read_pieces(db, self._run, stream):
                # By its step alone a row may be another one.
                found |= np.isin(wanted, _as_complex(steps, times)[times >= 0])
        return found

    def _present(self, db: Connection, extents: Sequence[Extent]) -> tuple[Numbers, Numbers]:
        """The numbers of all rows that there are, and their places. Gaps may be filled."""
        steps, times = read_places(db, self._run, self.stream)
        is_there = (steps >= 0) | (times >= 0)
        known = _as_complex(steps, times)
        for extent in extents:
            if not is_there[extent.start : extent.stop].all():
                # A row that says neither stays behind the one before it.
                for column in pieces.columns_of(db, self._run, self.stream, extent):
                    is_there[column.lines] = True
        numbers = np.flatnonzero(is_there)
        return numbers, known[numbers]


@dataclass(frozen=True)
class _Part:
    """A piece whose rows get other numbers, with new rows; or new rows behind all others."""

    extent: Extent | None
    added: list[Column]
    numbers: Numbers
    targets: Numbers


def read_places(db: Connection, run: int, stream: int) -> tuple[Numbers, Numbers]:
    """The steps and the times of all rows; where a row has none, -1. Events have no steps."""
    count = count_rows(db, run, stream)
    steps, times = np.full(count, -1.0), np.full(count, -1.0)
    for extent, *places in _read_pieces(db, run, stream):
        rows = slice(extent.start, extent.stop)
        steps[rows], times[rows] = places
    return steps, times


def _read_pieces(
    db: Connection, run: int, stream: int
) -> Iterator[tuple[Extent, Numbers, Numbers]]:
    """Piece by piece, the steps and the times of its rows."""
    known = known_keys(db, ["_step", "_timestamp"])
    has_steps = stream % 2 == HISTORY
    names = {key: name for name, key in known.items() if has_steps or name != "_step"}
    for extent in pieces.extents(db, run, stream):
        height = extent.stop - extent.start
        places = {name: np.full(height, -1.0) for name in ("_step", "_timestamp")}
        for column in pieces.columns_of(db, run, stream, extent, frozenset(names)):
            if column.kind in (FLOAT, INTEGER):
                values = np.asarray(column.values, np.float64)
                lines = column.lines - extent.start
                places[names[column.key]][lines] = np.where(np.isfinite(values), values, -1.0)
        yield extent, places["_step"], places["_timestamp"]


class _NewKeys(Exception):
    """Names that no run has had: only the writer can number them."""

    def __init__(self, names: list[str]) -> None:
        super().__init__()
        self._names = names

    def add(self, db: Connection) -> None:
        number_keys(db, self._names)


def _encoded(db: Connection, lines: Sequence[str], numbers: Numbers) -> list[Column]:
    """Lines as columns, under the numbers that they get."""

    def number(names: Iterable[str]) -> dict[str, int]:
        wanted = list(names)
        known = known_keys(db, wanted)
        if len(known) < len(set(wanted)):
            raise _NewKeys(wanted)
        return known

    return [column.at(numbers[column.lines]) for column in decode(encode(lines, number), 0)]


def _make_room(numbers: Numbers, before: Numbers) -> tuple[Numbers, Numbers]:
    """The numbers that present rows get, and those of new ones, which go before some of them.

    No row gets a lower number than it has: gaps are filled, and where there is none, rows go up.
    """
    count = len(numbers) + len(before)
    places = before + np.arange(len(before))  # Of the new ones, among all.
    is_new = np.zeros(count, bool)
    is_new[places] = True
    wanted = np.zeros(count, np.int64)
    wanted[~is_new] = numbers
    order = np.arange(count)
    # Each at least one behind the one before it: the largest lead so far.
    settled = order + np.maximum.accumulate(np.where(is_new, 0, wanted - order).clip(min=0))
    return settled[~is_new], settled[is_new]


def _as_complex(steps: Numbers, times: Numbers) -> Numbers:
    """Pairs as single numbers that sort as the pairs do."""
    return steps + 1j * times


def _as_places(places: Collection[Place]) -> Numbers:
    return _as_complex(*np.array(list(places), np.float64).reshape(-1, 2).T)


def _place(line: str, stream: int) -> Place:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict):
        return -1.0, -1.0
    step = _number(row.get("_step")) if stream == HISTORY else -1.0
    return step, _number(row.get("_timestamp"))


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return -1.0
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return -1.0  # Kept as text, so it is no number in what is stored either.
    return float(value) if math.isfinite(value) else -1.0
