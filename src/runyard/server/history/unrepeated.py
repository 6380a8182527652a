"""Which rows come again after a cut, as the resumed program's first row tells.

Rows that were logged after the newest checkpoint are put aside before a trial goes on, since most
programs log a step and then save it. Some save first (Lightning does): the row of the saved step is
logged after the checkpoint and never again. And where a program was cut off while it wrote (a
checkpoint of transformers' has many files), it goes on from the one before.
"""

from __future__ import annotations

import json
import re
from itertools import pairwise
from sqlite3 import Connection
from typing import Any

from runyard.server.history.history import HISTORY, count_rows, read_rows, stream_of
from runyard.server.history.pieces import extents

# More than are logged between a checkpoint and the end of its step.
_MOST_ROWS = 100
# In so many of the rows before a counter must have counted upwards.
_LOOKED_AT = 20
# Fewer rows may grow alike by chance, such as a `best_epoch` in the beginning.
_LEAST_EVEN = 6
# epoch, trainer/global_step, train/epoch, iteration, batch_idx; not best_epoch or warmup_steps.
_COUNTER = re.compile(
    r"(?:^|[/.])(?:global_?)?(?:step|epoch|iter(?:ation)?|batch(?:_idx)?)s?$", re.I
)


def unrepeated_rows(db: Connection, run: int, first: str) -> list[str]:
    """The rows to bring back, before a resumed program's first row is stored."""
    archive = _newest_archive(db, run)
    next_row = _read(first)
    if archive is None or next_row is None:
        return []
    last_rows = _last_rows(db, run)
    lines: list[str] = []
    for line in _rows_aside(db, run, archive):
        row = _read(line)
        if row is None or not _is_between(last_rows, row, next_row):
            break
        lines.append(line)
        last_rows.append(row)
    return lines


def rows_left_aside(db: Connection, run: int) -> list[str]:
    """The rows to bring back where a program went on, logged nothing and ended.

    None where the run has gone on since they were put aside, nor where they are more than a step's:
    then the program has begun anew.
    """
    archive = _newest_archive(db, run)
    lines = [] if archive is None else _rows_aside(db, run, archive)
    first = _read(lines[0]) if lines else None
    if first is None or len(lines) == _MOST_ROWS:
        return []
    return lines if _grows([*_last_rows(db, run)[-1:], first], "_timestamp") else []


def _newest_archive(db: Connection, run: int) -> int | None:
    number: int | None = db.execute(
        "SELECT max(number) FROM archives WHERE run = ? AND reason = 'rewound'", (run,)
    ).fetchone()[0]
    return number


def _rows_aside(db: Connection, run: int, archive: int) -> list[str]:
    aside = stream_of(archive, HISTORY)
    start = next((extent.start for extent in extents(db, run, aside)), 0)
    return [line for _, line in read_rows(db, run, aside, start, start + _MOST_ROWS)]


def count_repeated(db: Connection, run: int, first: str) -> int:
    """How many of the last rows a resumed program is about to log again."""
    last_rows, next_row = _last_rows(db, run), _read(first)
    if next_row is None:
        return 0
    counters = _counters(next_row, last_rows)
    count = 0
    while count < len(last_rows) and any(
        last_rows[-1 - count][name] >= next_row[name] for name in counters
    ):
        count += 1
    # Who is behind all of them has not gone back a little: it counts otherwise, or begins anew.
    if not 0 < count < len(last_rows):
        return 0
    row = last_rows[-count]
    is_same = all(row[name] == next_row[name] for name in counters)
    # A row with other keys is no repetition: an evaluation says of which epoch it is, too.
    return count if is_same and _names(row) == _names(next_row) else 0


def _names(row: dict[str, Any]) -> set[str]:
    """The keys that the program logged."""
    return {name for name in row if not name.startswith("_")}


def _last_rows(db: Connection, run: int) -> list[dict[str, Any]]:
    start = max(0, count_rows(db, run, HISTORY) - _LOOKED_AT)
    lines = (line for _, line in read_rows(db, run, HISTORY, start))
    return [row for line in lines if (row := _read(line)) is not None]


def _is_between(
    last_rows: list[dict[str, Any]], row: dict[str, Any], next_row: dict[str, Any]
) -> bool:
    """Whether a row follows those that were kept, and the program has gone on behind it."""
    # Further back two rows may have one step: one that came back, and the first after it.
    in_turn = [*last_rows[-1:], row, next_row]
    if _grows(in_turn, "_step"):
        return True
    # Without `step=` the client counts on from what was kept: the next row may have its step, too,
    # and this one that of a row that came back. Other keys may tell, such as epochs.
    counters = _counters(row, last_rows) or _even_counters([*last_rows, row])
    return bool(counters) and all(_grows(in_turn, name) for name in counters)


def _counters(row: dict[str, Any], before: list[dict[str, Any]]) -> list[str]:
    """The keys by which a program counts its steps.

    By their names alone: other numbers grow as well (`best_epoch`), and stand still while the
    program gets on.
    """
    named = [name for name in row if _COUNTER.search(name) and _is_number(row[name])]
    return [name for name in named if len(before) > 1 and _grows(before, name)]


def _even_counters(rows: list[dict[str, Any]]) -> list[str]:
    """Keys of any name that grew from row to row by the same number: samples, tokens."""
    if len(rows) < _LEAST_EVEN:
        return []
    return [
        name
        for name in rows[-1]
        if not name.startswith("_")
        and _grows(rows, name)
        and len({after[name] - before[name] for before, after in pairwise(rows)}) == 1
    ]


def _grows(rows: list[dict[str, Any]], name: str) -> bool:
    """Whether a key is in all of these rows, as a number that gets larger from row to row."""
    values: list[Any] = [row.get(name) for row in rows]
    return all(map(_is_number, values)) and all(
        before < after for before, after in pairwise(values)
    )


def _is_number(value: object) -> bool:
    return type(value) in (int, float)


def _read(line: str) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None
