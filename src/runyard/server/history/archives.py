"""Rows that are taken out of a run, and kept: a rewind's, or those of a run that was begun anew.

Clients may use a run's id again, which overwrites it, and may rewind a run to an earlier step.
Charts then show what is left. The rest goes to streams of its own, where nothing draws it. Rows
keep their numbers wherever they go.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from sqlite3 import Connection
from typing import Any

import numpy as np
import numpy.typing as npt

from runyard.server.history import pieces
from runyard.server.history.columns import Numbers
from runyard.server.history.history import (
    EVENTS,
    HISTORY,
    count_rows,
    cut_rows,
    put_rows,
    read_rows,
    stream_of,
)
from runyard.server.history.merging import Merge, read_places
from runyard.server.history.pieces import Extent, close_gap
from runyard.server.history.row_summaries import summary_of_rows
from runyard.server.runs import runs
from runyard.server.store.sql import Row, exists, fetch_number, insert
from runyard.server.store.store import Changed, Slice, Transfer

Flags = npt.NDArray[np.bool_]
# Of the steps and the times of rows: which of them go.
Rule = Callable[[Numbers, Numbers], Flags]
# Whether a transfer may still be made.
Guard = Callable[[Connection], bool]


class Superseded(Exception):
    """Whoever asked for the transfer has no right to it any more."""


class PutAside(Transfer):
    """Puts rows into an archive, the last ones first; `number` is the archive's, if it has any."""

    def __init__(
        self, run: int, rule: Rule, reason: str, now: float, guard: Guard = lambda _: True
    ) -> None:
        self._run, self._rule, self._reason, self._now = run, rule, reason, now
        self._guard = guard
        self.number: int | None = None
        # When the newest of all rows was logged, those put aside included; -1: there was none.
        self.newest = -1.0
        self._after: float | None = None
        self._due: list[tuple[int, Extent, Numbers]] | None = None
        # The first row that goes, of each stream: some behind it may stay, and move up.
        self._firsts: dict[int, int] = {}

    def restart(self) -> None:
        self._due = None

    def plan(self, db: Connection) -> Slice | None:
        if not self._due:
            self._due = self._look(db)
        if not self._due:
            return self._move_up(db)
        stream, extent, rows = self._due.pop()
        if len(rows) == extent.stop - extent.start:
            return self._move(stream, extent)
        columns = pieces.columns_of(db, self._run, stream, extent)
        gone, left = (pieces.remake(db, extent, part) for part in pieces.split(columns, rows))
        return self._replace(stream, extent, gone, left)

    def _look(self, db: Connection) -> list[tuple[int, Extent, Numbers]]:
        """Which pieces have rows to go, in order; with the numbers of these rows."""
        steps, times = read_places(db, self._run, HISTORY)
        later = self._rule(steps, times)
        if len(times):
            self.newest = max(self.newest, float(times.max()))
        if later.any():
            first = float(times[np.argmax(later)])
            self._after = first if self._after is None else min(self._after, first)
        due = self._pieces_with(db, HISTORY, later)
        # System metrics of the time that is gone go with it.
        after = self._after if self._reason == "rewound" else -np.inf
        if after is not None and (after >= 0 or after == -np.inf):
            _, logged = read_places(db, self._run, EVENTS)
            due += self._pieces_with(db, EVENTS, logged >= after)
        return due

    def _pieces_with(
        self, db: Connection, stream: int, later: Flags
    ) -> list[tuple[int, Extent, Numbers]]:
        rows = np.flatnonzero(later)
        if not len(rows):
            return []
        self._firsts[stream] = min(int(rows[0]), self._firsts.get(stream, int(rows[0])))
        due = []
        for extent in pieces.extents(db, self._run, stream):
            first, last = np.searchsorted(rows, (extent.start, extent.stop))
            if last > first:
                due.append((stream, extent, rows[first:last]))
        return due

    def _move_up(self, db: Connection) -> Slice | None:
        for stream, first in self._firsts.items():
            close = close_gap(db, self._run, stream, first)
            if close is not None:
                return self._guarded(close)
        return None

    def _guarded(self, part: Slice) -> Slice:
        def change(db: Connection) -> None:
            self._archive(db)
            part(db)

        return change

    def _move(self, stream: int, extent: Extent) -> Slice:
        def put_aside(db: Connection) -> None:
            number = self._archive(db)
            pieces.move(db, self._run, stream, extent, stream_of(number, stream))
            self.number = number

        return put_aside

    def _replace(
        self, stream: int, extent: Extent, gone: list[pieces.Piece], left: list[pieces.Piece]
    ) -> Slice:
        def cut(db: Connection) -> None:
            number = self._archive(db)
            pieces.remove(db, self._run, stream, extent)
            for piece in gone:
                pieces.store(db, self._run, stream_of(number, stream), piece)
            for piece in left:
                pieces.store(db, self._run, stream, piece)
            self.number = number

        return cut

    def _archive(self, db: Connection) -> int:
        """The archive's number; it is begun with the first slice."""
        run = runs.by_key(db, self._run)
        if run is None or not self._guard(db):
            raise Superseded(f"run {self._run} is not to be changed any more")
        db.execute("DELETE FROM placements WHERE run = ?", (self._run,))
        if self.number is not None:
            return self.number
        return _begin(db, run, self._reason, self._now)


class Rewind(Transfer):
    """Puts the rows of a rule aside; what is left makes the summary.

    `keeps_own`: what the program put into the summary itself, which is in no row, stays; and if no
    row goes, all does, unless it `has_more` rows than the summary knows of.
    """

    def __init__(
        self,
        run: int,
        rule: Rule,
        now: float,
        *,
        keeps_own: bool,
        has_more: bool = False,
        guard: Guard = lambda _: True,
    ) -> None:
        self._run, self._keeps_own, self._has_more = run, keeps_own, has_more
        self._guard = guard
        self.aside = PutAside(run, rule, "rewound", now, guard)
        self._logged: dict[str, Any] | None = None
        self._is_summed_up = False

    def restart(self) -> None:
        self.aside.restart()

    def plan(self, db: Connection) -> Slice | None:
        run = runs.by_key(db, self._run)
        if run is None or self._is_summed_up:
            return None
        part = self.aside.plan(db)
        changes = part is not None or self.aside.number is not None or self._has_more
        if self._keeps_own and not changes:
            return None
        summary = json.loads(run["summary"])
        if self._logged is None:
            self._logged = summary_of_rows(db, self._run, summary) if self._keeps_own else {}
        if part is not None:
            return part
        rows = summary_of_rows(db, self._run, summary)
        own = {name: value for name, value in summary.items() if name not in self._logged}
        made = json.dumps({**own, **rows} if self._keeps_own else rows)

        def sum_up(db: Connection) -> None:
            now = runs.by_key(db, self._run)
            if now is None or not self._guard(db):
                raise Superseded(f"run {self._run} is not to be changed any more")
            if now["summary"] != run["summary"]:
                raise Changed(f"the summary of run {self._run} has changed")
            runs.update(db, self._run, summary=made)
            if self.aside.number is not None:
                # Pages hear of it, which saw the archive begin.
                db.execute(
                    "UPDATE archives SET reason = reason WHERE run = ? AND number = ?",
                    (self._run, self.aside.number),
                )
            self._is_summed_up = True

        return sum_up


class Restart(PutAside):
    """Puts all rows of a run aside: it begins anew."""

    def __init__(self, run: int, now: float) -> None:
        super().__init__(run, lambda steps, _: np.ones(len(steps), bool), "restarted", now)


class Restore(Transfer):
    """Brings an archive back: its run was not begun anew after all."""

    def __init__(self, run: int, number: int) -> None:
        self._run, self._number = run, number
        self._merge: tuple[Merge, int, Extent] | None = None
        # Streams in which nothing was when this began: pieces go back as they are.
        self._empty: set[int] | None = None
        self._is_done = False

    def restart(self) -> None:
        if self._merge is not None:
            self._merge[0].restart()

    def plan(self, db: Connection) -> Slice | None:
        if self._is_done:
            return None
        if self._merge is not None:
            merge, archived, extent = self._merge
            part = merge.plan(db)
            if part is not None:
                return part
            self._merge = None
            return self._forget(archived, extent)
        counts = {stream: count_rows(db, self._run, stream) for stream in (HISTORY, EVENTS)}
        if self._empty is None:
            self._empty = {stream for stream, count in counts.items() if not count}
        for stream, count in counts.items():
            archived = stream_of(self._number, stream)
            for extent in pieces.extents(db, self._run, archived):
                if stream in self._empty and count <= extent.start:
                    return self._move(archived, extent, stream)
                rows = read_rows(db, self._run, archived, extent.start, extent.stop)
                lines = [line for _, line in rows]
                self._merge = Merge(self._run, stream, lines, goes_back=True), archived, extent
                return self.plan(db)
        return self._finish

    def _move(self, archived: int, extent: Extent, stream: int) -> Slice:
        def bring_back(db: Connection) -> None:
            pieces.move(db, self._run, archived, extent, stream)

        return bring_back

    def _forget(self, archived: int, extent: Extent) -> Slice:
        def forget(db: Connection) -> None:
            pieces.remove(db, self._run, archived, extent)

        return forget

    def _finish(self, db: Connection) -> None:
        run = runs.by_key(db, self._run)
        place = (self._run, self._number)
        row = db.execute(
            "SELECT summary FROM archives WHERE run = ? AND number = ?", place
        ).fetchone()
        if row is not None and run is not None:
            summary = {**json.loads(row["summary"]), **json.loads(run["summary"])}
            runs.update(db, self._run, summary=json.dumps(summary))
        db.execute("DELETE FROM archives WHERE run = ? AND number = ?", place)
        self._is_done = True


def put_end_aside(db: Connection, run: Row, start: int, now: float) -> None:
    """Put the rows from this one on aside, a few: they come again."""
    number = _begin(db, run, "rewound", now)
    gone = [line for _, line in read_rows(db, run["key"], HISTORY, start)]
    put_rows(db, run["key"], stream_of(number, HISTORY), 0, gone)
    cut_rows(db, run["key"], HISTORY, start)


def put_late(
    db: Connection,
    run: Row,
    number: int | None,
    stream: int,
    start: int,
    lines: Sequence[str],
    now: float,
) -> int:
    """Put rows aside that come too late to be the run's. The number of their archive, which is
    begun unless they have one."""
    number = _begin(db, run, "late", now) if number is None else number
    put_rows(db, run["key"], stream_of(number, stream), start, lines)
    return number


def is_there(db: Connection, run: int, number: int) -> bool:
    place = (run, number)
    return exists(db, "SELECT 1 FROM archives WHERE run = ? AND number = ?", place)


def has_rows(db: Connection, run: int) -> bool:
    return any(count_rows(db, run, stream) for stream in (HISTORY, EVENTS))


def of_run(db: Connection, run: int) -> list[dict[str, Any]]:
    """What was put aside, and how much of it there is."""
    rows = db.execute(
        "SELECT number, reason, made_at FROM archives WHERE run = ? ORDER BY number", (run,)
    ).fetchall()
    return [
        {**dict(row), "steps": _count(db, run, stream_of(row["number"], HISTORY))} for row in rows
    ]


def _count(db: Connection, run: int, stream: int) -> int:
    """Rows in an archive have the numbers that they had in the run: there may be gaps."""
    return sum(
        pieces.count_rows_in(db, run, stream, extent) for extent in pieces.extents(db, run, stream)
    )


def read(db: Connection, run: int) -> list[Row]:
    """What was put aside, with the config and the summary of that time."""
    return db.execute(
        "SELECT number, reason, made_at, config, summary FROM archives WHERE run = ? "
        "ORDER BY number",
        (run,),
    ).fetchall()


def _begin(db: Connection, run: Row, reason: str, now: float) -> int:
    question = "SELECT coalesce(max(number), 0) + 1 FROM archives WHERE run = ?"
    number = fetch_number(db, question, (run["key"],))
    columns = {"run": run["key"], "number": number, "reason": reason, "made_at": now}
    insert(db, "archives", {**columns, "config": run["config"], "summary": run["summary"]})
    return number
