"""Figures of kinds of experiments: measured aside, or seen in the sweeps that ran."""

from __future__ import annotations

import json
from collections.abc import Mapping
from sqlite3 import Connection
from typing import Any

from runyard.server.store.sql import Row, insert

_MOST_FIGURES = 20
_MOST_SWEEPS = 10


def add(
    db: Connection,
    project: int,
    user: int,
    kind: str,
    hardware: str,
    figures: Mapping[str, Any],
    now: float,
) -> int:
    """Keep a measurement; its key. Of each kind and hardware the newest are kept."""
    place = {"project": project, "kind": kind, "hardware": hardware}
    columns = {**place, "user": user, "made_at": now, "figures": json.dumps(figures)}
    key = insert(db, "figures", columns)
    db.execute(
        "DELETE FROM figures WHERE project = :project AND kind = :kind AND hardware = :hardware "
        "AND key NOT IN (SELECT key FROM figures "
        "WHERE project = :project AND kind = :kind AND hardware = :hardware "
        "ORDER BY made_at DESC LIMIT :most)",
        {**place, "most": _MOST_FIGURES},
    )
    return key


def of_project(db: Connection, project: int, kind: str | None) -> list[Row]:
    return db.execute(
        "SELECT figures.*, users.name AS user_name FROM figures "
        "JOIN users ON users.key = figures.user "
        "WHERE project = :project AND (:kind IS NULL OR kind = :kind) "
        "ORDER BY made_at DESC LIMIT 200",
        {"project": project, "kind": kind},
    ).fetchall()


def estimate(db: Connection, sweep: int, kind: str, expected: Mapping[str, Any]) -> None:
    """What was expected of a sweep; told again it is replaced."""
    db.execute(
        "INSERT OR REPLACE INTO estimates (sweep, kind, estimate) VALUES (?, ?, ?)",
        (sweep, kind, json.dumps(expected)),
    )


def estimate_of(db: Connection, sweep: int) -> dict[str, Any] | None:
    """What was expected of a sweep, and what it took so far."""
    row = db.execute("SELECT * FROM estimates WHERE sweep = ?", (sweep,)).fetchone()
    if row is None:
        return None
    expected = json.loads(row["estimate"]) or None
    return {"kind": row["kind"], "estimate": expected, "truth": truth(db, sweep)}


def truth(db: Connection, sweep: int) -> dict[str, Any] | None:
    """What the trials that finished took; None before the first."""
    row = db.execute(
        "SELECT count(*) AS trials, avg(trials.seconds) AS seconds, max(trials.seconds) AS most, "
        "min(trials.seconds) AS least, "
        "max(json_extract(attempts.usage, '$.memory_peak')) AS memory_peak, "
        "max(json_extract(attempts.usage, '$.vram_peak')) AS vram_peak, "
        "avg(json_extract(attempts.usage, '$.cpu_seconds') / "
        "max(trials.seconds, 0.001)) AS cpus "
        "FROM trials LEFT JOIN attempts "
        "ON attempts.run = trials.run AND attempts.number = trials.attempt "
        "WHERE trials.sweep = ? AND trials.state = 'finished'",
        (sweep,),
    ).fetchone()
    return None if not row["trials"] else dict(row)


def sweeps_of_kind(db: Connection, project: int, kind: str) -> list[dict[str, Any]]:
    """The newest sweeps of this kind in which a trial finished: what was expected and what came."""
    rows = db.execute(
        "SELECT sweeps.key, sweeps.id, sweeps.name, sweeps.created_at, estimates.estimate "
        "FROM estimates JOIN sweeps ON sweeps.key = estimates.sweep "
        "WHERE estimates.kind = ? AND sweeps.project = ? AND sweeps.ended_trials > 0 "
        "ORDER BY sweeps.created_at DESC LIMIT ?",
        (kind, project, _MOST_SWEEPS),
    ).fetchall()
    return [
        {
            **{name: row[name] for name in ("id", "name", "created_at")},
            "estimate": json.loads(row["estimate"]) or None,
            "truth": truth(db, row["key"]),
        }
        for row in rows
    ]
