"""What one file_stream post changes: lines, the summary, signs of life, the end."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from runyard.server import states
from runyard.server.store import attempts, runs, stops
from runyard.server.store.history import put_rows
from runyard.server.store.lines import put_lines


@dataclass(frozen=True)
class Post:
    """One message of a client's stream."""

    # stream → (number of the first row or line, rows or lines)
    rows: Mapping[int, tuple[int, Sequence[str]]] = field(default_factory=dict)
    output: tuple[int, Sequence[str]] = (0, ())
    summary: str | None = None
    preempting: bool = False
    complete: bool = False
    exit_code: int = 0


class Recorded(NamedTuple):
    run: int
    stop_asked: bool


def record(
    connection: sqlite3.Connection, entity: str, project: str, run_id: str, post: Post, now: float
) -> Recorded | None:
    """Store a post. Says of which run, and whether that shall stop; None if there is none."""
    row = runs.by_path(connection, entity, project, run_id)
    if row is None:
        return None
    key: int = row["key"]
    for stream, (start, rows) in post.rows.items():
        put_rows(connection, key, stream, start, rows)
    put_lines(connection, key, "output", *post.output)
    columns: dict[str, object] = {"heartbeat_at": now, "seen_client": 1}
    if post.summary is not None:
        columns["summary"] = post.summary
    if post.preempting:
        columns["preempting"] = 1
    columns |= _state_after(connection, row, post, now)
    runs.update(connection, key, **columns)
    return Recorded(key, bool(row["stop_asked"]))


def _state_after(
    connection: sqlite3.Connection, row: runs.Row, post: Post, now: float
) -> dict[str, object]:
    attempt = attempts.last(connection, row["key"])
    if (
        attempt is not None
        and attempt["exit_code"] is not None
        and row["state"] not in states.ALIVE
    ):
        return {}  # Its process was seen to end; late data changes nothing about that.
    preempting = bool(row["preempting"]) or post.preempting
    if post.complete:
        if attempt is not None and attempt["ended_at"] is None:
            return {}  # The process may go on after `finish()`; its own end is reported.
        state = states.after_completion(post.exit_code, preempting=preempting)
        return {
            "state": stops.end_state(row, state),
            "exit_code": post.exit_code,
            "ended_at": now,
        }
    if post.preempting:
        return {"state": "preempting", "exit_code": None, "ended_at": None}
    return runs.revived(row)


def mark_silent(connection: sqlite3.Connection, before: float) -> int:
    """Runs that were last heard before that time are not alive any more."""
    rows = connection.execute(
        "SELECT key, preempting, stop_asked, heartbeat_at FROM runs "
        "WHERE state IN ('running', 'preempting') AND heartbeat_at < ?",
        (before,),
    ).fetchall()
    for row in rows:
        state = stops.end_state(row, states.after_silence(preempting=bool(row["preempting"])))
        runs.update(connection, row["key"], state=state, ended_at=row["heartbeat_at"])
        attempts.lose_open(connection, row["key"], row["heartbeat_at"])
    return len(rows)
