"""Alerts that programs raised."""

from __future__ import annotations

from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any

_LONGEST_TITLE, _LONGEST_TEXT = 1_000, 20_000


@dataclass(frozen=True)
class Alert:
    title: str
    text: str
    level: str = "INFO"
    # One of the same title is not repeated within this time.
    wait_seconds: float = 0.0


def raise_alert(db: Connection, run: int, alert: Alert, now: float) -> bool:
    """Keep an alert; says whether it is one, and not the repetition of an earlier one."""
    title = alert.title[:_LONGEST_TITLE]
    repeated = db.execute(
        "SELECT 1 FROM alerts WHERE run = ? AND title = ? AND raised_at > ?",
        (run, title, now - alert.wait_seconds),
    ).fetchone()
    if repeated is not None:
        return False
    db.execute(
        "INSERT INTO alerts (run, title, text, level, wait_seconds, raised_at) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        (run, title, alert.text[:_LONGEST_TEXT], alert.level[:20], alert.wait_seconds, now),
    )
    return True


def of_run(db: Connection, run: int) -> list[dict[str, Any]]:
    rows = db.execute(
        "SELECT title, text, level, raised_at FROM alerts WHERE run = ? ORDER BY key", (run,)
    )
    return [dict(row) for row in rows]
