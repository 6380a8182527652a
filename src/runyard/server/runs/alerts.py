"""Alerts that programs raised."""

from __future__ import annotations

from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any

from runyard.server.store.sql import exists, insert

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
    title, text = alert.title[:_LONGEST_TITLE], alert.text[:_LONGEST_TEXT]
    question = "SELECT 1 FROM alerts WHERE run = ? AND title = ? AND raised_at > ?"
    if exists(db, question, (run, title, now - alert.wait_seconds)):
        return False
    columns = {**vars(alert), "title": title, "text": text, "level": alert.level[:20]}
    insert(db, "alerts", {"run": run, "raised_at": now, **columns})
    return True


def of_run(db: Connection, run: int) -> list[dict[str, Any]]:
    rows = db.execute(
        "SELECT title, text, level, raised_at FROM alerts WHERE run = ? ORDER BY key", (run,)
    )
    return [dict(row) for row in rows]
