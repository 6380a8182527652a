"""Alerts: what a program wanted its researcher to know at once."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Any

# A program may send one in every step of its loop.
_MOST_OF_A_RUN = 1000


@dataclass(frozen=True)
class Alert:
    title: str
    text: str
    level: str = "INFO"
    wait_seconds: float = 0.0  # Within these, the same title is not worth a second alert.


def add(connection: sqlite3.Connection, run: int, alert: Alert, now: float) -> bool:
    """Whether it was kept: not if it comes too soon after its like."""
    last = connection.execute(
        "SELECT max(at) FROM alerts WHERE run = ? AND title = ?", (run, alert.title)
    ).fetchone()[0]
    if last is not None and now - last < alert.wait_seconds:
        return False
    connection.execute(
        "INSERT INTO alerts (run, at, title, text, level) VALUES (?, ?, ?, ?, ?)",
        (run, now, alert.title, alert.text, alert.level),
    )
    connection.execute(
        "DELETE FROM alerts WHERE run = ? AND key <= "
        "(SELECT key FROM alerts WHERE run = ? ORDER BY key DESC LIMIT 1 OFFSET ?)",
        (run, run, _MOST_OF_A_RUN),
    )
    return True


def of_run(connection: sqlite3.Connection, run: int) -> list[dict[str, Any]]:
    rows = connection.execute(
        "SELECT at, title, text, level FROM alerts WHERE run = ? ORDER BY key", (run,)
    )
    return [dict(row) for row in rows]
