"""Rows that are taken out of a run, and kept: a rewind's, or those of a run that was begun anew.

Clients may use a run's id again, which overwrites it, and may rewind a run to an earlier step.
Charts then show what is left. The rest goes to streams of its own, where nothing draws it.
"""

from __future__ import annotations

import json
import math
import sqlite3
from typing import Any

import numpy as np
import numpy.typing as npt

from runyard.server.store import runs
from runyard.server.store.columns import Numbers
from runyard.server.store.history import (
    EVENTS,
    HISTORY,
    count_rows,
    cut_rows,
    put_rows,
    read_objects,
    read_rows,
)
from runyard.server.store.merging import merge_rows, read_places

Flags = npt.NDArray[np.bool_]

_TABLES = ("batches", "segments", "series")


def archive_run(connection: sqlite3.Connection, run: runs.Row, now: float) -> int | None:
    """Put all rows of a run aside. The archive's number, if there was anything to keep."""
    key = run["key"]
    if not any(count_rows(connection, key, stream) for stream in (HISTORY, EVENTS)):
        return None
    number = _begin(connection, run, "restarted", now)
    for stream in (HISTORY, EVENTS):
        for table in _TABLES:
            connection.execute(
                f"UPDATE {table} SET stream = ? WHERE run = ? AND stream = ?",  # noqa: S608
                (stream_of(number, stream), key, stream),
            )
    connection.execute("DELETE FROM placements WHERE run = ?", (key,))
    return number


def restore(connection: sqlite3.Connection, run: int, number: int) -> None:
    """Bring an archive back: its run was not begun anew after all."""
    found = connection.execute(
        "SELECT summary FROM archives WHERE run = ? AND number = ?", (run, number)
    ).fetchone()
    if found is None:
        return
    for stream in (HISTORY, EVENTS):
        kept = stream_of(number, stream)
        lines = [line for _, line in read_rows(connection, run, kept)]
        merge_rows(connection, run, stream, lines)
        cut_rows(connection, run, kept, 0)
    row = runs.by_key(connection, run)
    if row is not None:
        merged = {**json.loads(found["summary"]), **json.loads(row["summary"])}
        runs.update(connection, run, summary=json.dumps(merged))
    connection.execute("DELETE FROM archives WHERE run = ? AND number = ?", (run, number))


def rewind(connection: sqlite3.Connection, run: runs.Row, step: float, now: float) -> None:
    """Put the rows after a step aside; what is left makes the summary."""
    steps, times = read_places(connection, run["key"], HISTORY)
    _put_aside(connection, run, steps > step, times, now)
    summary = _summary_of_rows(connection, run)
    runs.update(connection, run["key"], summary=json.dumps(summary))


def go_back(
    connection: sqlite3.Connection,
    run: runs.Row,
    saved_at: float | None,
    now: float,
    *,
    has_more: bool = False,
) -> float:
    """Put the rows aside that were logged after a checkpoint; all, if there is none.

    `has_more`: rows were brought in that the summary does not know of. Returns when the newest of
    all rows was logged, those put aside included; -1 if there is none.
    """
    _, times = read_places(connection, run["key"], HISTORY)
    later = np.ones(len(times), bool) if saved_at is None else times > saved_at
    if later.any() or has_more:
        logged = _summary_of_rows(connection, run)
        told = json.loads(run["summary"])
        # What the program put there itself is in no row, and stays.
        own = {name: value for name, value in told.items() if name not in logged}
        _put_aside(connection, run, later, times, now)
        summary = {**own, **_summary_of_rows(connection, run)}
        runs.update(connection, run["key"], summary=json.dumps(summary))
    return float(times.max()) if len(times) else -1.0


def _put_aside(
    connection: sqlite3.Connection, run: runs.Row, later: Flags, times: Numbers, now: float
) -> None:
    key = run["key"]
    if later.any():
        number = _begin(connection, run, "rewound", now)
        first = int(np.argmax(later))
        rows = list(read_rows(connection, key, HISTORY, first))
        gone = [line for number_, line in rows if later[number_]]
        put_rows(connection, key, stream_of(number, HISTORY), 0, gone)
        cut_rows(connection, key, HISTORY, first)
        # Steps need not grow from row to row where several writers took part.
        put_rows(
            connection, key, HISTORY, first, [line for number_, line in rows if not later[number_]]
        )
        _rewind_events(connection, key, number, float(times[first]))
        connection.execute("DELETE FROM placements WHERE run = ?", (key,))


def fork(connection: sqlite3.Connection, parent: int, child: int, step: float) -> None:
    """Begin a run with another's rows up to a step."""
    for table in _TABLES:
        names = [
            row["name"]
            for row in connection.execute(f"PRAGMA table_info({table})")
            if row["name"] != "run"
        ]
        columns = ", ".join(names)
        # The names are our schema's, never a client's.
        connection.execute(
            f"INSERT INTO {table} (run, {columns}) "  # noqa: S608
            f"SELECT ?, {columns} FROM {table} WHERE run = ? AND stream = ?",
            (child, parent, HISTORY),
        )
    steps, _ = read_places(connection, child, HISTORY)
    later = steps > step
    if later.any():
        first = int(np.argmax(later))
        rows = read_rows(connection, child, HISTORY, first)
        kept = [line for number, line in rows if not later[number]]
        cut_rows(connection, child, HISTORY, first)
        put_rows(connection, child, HISTORY, first, kept)


def of_run(connection: sqlite3.Connection, run: int) -> list[dict[str, Any]]:
    """What was put aside, and how much of it there is."""
    rows = connection.execute(
        "SELECT number, reason, made_at FROM archives WHERE run = ? ORDER BY number", (run,)
    ).fetchall()
    return [
        {**dict(row), "steps": count_rows(connection, run, stream_of(row["number"], HISTORY))}
        for row in rows
    ]


def read(connection: sqlite3.Connection, run: int) -> list[runs.Row]:
    """What was put aside, with the config and the summary of that time."""
    return connection.execute(
        "SELECT number, reason, made_at, config, summary FROM archives WHERE run = ? "
        "ORDER BY number",
        (run,),
    ).fetchall()


def _begin(connection: sqlite3.Connection, run: runs.Row, reason: str, now: float) -> int:
    number: int = connection.execute(
        "SELECT coalesce(max(number), 0) + 1 FROM archives WHERE run = ?", (run["key"],)
    ).fetchone()[0]
    connection.execute(
        "INSERT INTO archives (run, number, reason, made_at, config, summary) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        (run["key"], number, reason, now, run["config"], run["summary"]),
    )
    return number


def stream_of(number: int, stream: int) -> int:
    """Where an archive keeps a stream's rows; the run's own are as in archive 0."""
    return 2 * number + stream


def _rewind_events(connection: sqlite3.Connection, run: int, number: int, after: float) -> None:
    """System metrics of the time that is gone go with it."""
    _, times = read_places(connection, run, EVENTS)
    later = times >= after
    if after >= 0 and later.any():
        first = int(np.argmax(later))
        gone = [line for _, line in read_rows(connection, run, EVENTS, first)]
        put_rows(connection, run, stream_of(number, EVENTS), 0, gone)
        cut_rows(connection, run, EVENTS, first)


def _summary_of_rows(connection: sqlite3.Connection, run: runs.Row) -> dict[str, Any]:
    """The last value of each key; minima and the like, which `define_metric` asked for, anew."""
    summary: dict[str, Any] = {}
    values: dict[str, list[float]] = {}
    asked = {
        name: kinds
        for name, kinds in json.loads(run["summary"]).items()
        if isinstance(kinds, dict) and kinds and set(kinds) <= set(_KINDS)
    }
    for _, row in read_objects(connection, run["key"], HISTORY):
        if isinstance(row, dict):
            summary.update(row)
            for name in asked:
                value = row.get(name)
                if isinstance(value, int | float) and math.isfinite(value):
                    values.setdefault(name, []).append(value)
    for name, kinds in asked.items():
        if values.get(name):
            summary[name] = {kind: _KINDS[kind](values[name]) for kind in kinds}
    return summary


_KINDS: dict[str, Any] = {
    "min": min,
    "max": max,
    "mean": lambda numbers: sum(numbers) / len(numbers),
    "first": lambda numbers: numbers[0],
    "last": lambda numbers: numbers[-1],
}
