"""Several writers of one run: each numbers its rows from zero, the run has them as they come."""

from __future__ import annotations

from collections.abc import Sequence
from sqlite3 import Connection

from runyard.server.history.history import count_rows, put_rows


def put_shared_rows(
    db: Connection, run: int, stream: int, writer: str, start: int, lines: Sequence[str]
) -> None:
    """Rows of one writer: those that came before are replaced in place, new ones go to the end."""
    position = start
    stop = start + len(lines)
    while position < stop:
        known = db.execute(
            "SELECT start, stop, place FROM placements WHERE run = ? AND stream = ? "
            "AND writer = ? AND stop > ? AND start < ? ORDER BY start LIMIT 1",
            (run, stream, writer, position, stop),
        ).fetchone()
        if known is None or known["start"] > position:
            end = stop if known is None else min(stop, known["start"])
            place = count_rows(db, run, stream)
            _remember(db, run, stream, writer, position, end, place)
        else:
            end = min(stop, known["stop"])
            place = known["place"] + position - known["start"]
        put_rows(db, run, stream, place, lines[position - start : end - start])
        position = end


def _remember(
    db: Connection, run: int, stream: int, writer: str, start: int, stop: int, place: int
) -> None:
    grown = db.execute(
        "UPDATE placements SET stop = ? WHERE run = ? AND stream = ? AND writer = ? AND stop = ? "
        "AND place + stop - start = ?",
        (stop, run, stream, writer, start, place),
    )
    if grown.rowcount == 0:
        db.execute(
            "INSERT INTO placements (run, stream, writer, start, stop, place) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            (run, stream, writer, start, stop, place),
        )
