"""What a list of projects shows of each: how many runs, how active, and a thumbnail of a metric.

Remembered, and read again for the projects where something changed: counting a lab's hundred
thousand runs for each look at the list takes a tenth of a second.
"""

from __future__ import annotations

from sqlite3 import Connection
from typing import NamedTuple

from runyard.server.history.history import HISTORY
from runyard.server.history.reading.curves import read_curve
from runyard.server.history.reading.defined_metrics import of_metrics, read_defined
from runyard.server.history.reading.dotted_names import names_of_run
from runyard.server.store.changes import Changes, Kind
from runyard.server.store.json_text import parse

DAYS = 30
_DAY = 86_400
_SPARK = 48
_SHOWN = (Kind.RUN, Kind.DELETED, Kind.MOVED, Kind.HISTORY, Kind.REWOUND)
# These have signs of life, of which `Changes` tells nothing.
_ALIVE = ("running", "preempting")


class Overview(NamedTuple):
    """Of one project; `activity` is how many runs began on each of the last days, today's last."""

    counts: dict[str, int]
    last_at: float
    activity: list[int]
    metric: str | None
    spark: list[float]


class ProjectOverviews:
    """One for a database; threads may share it."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._known: dict[int, tuple[int, int, Overview]] = {}

    def read(self, db: Connection, project: int, revision: int, now: float) -> Overview:
        """`revision`: of before the first row was read."""
        newest, day = self._changes.of_project(project, _SHOWN), int(now // _DAY)
        known = self._known.get(project)
        if known is not None and known[:2] == (newest, day):
            overview = known[2]
            if not overview.counts.keys() & set(_ALIVE):
                return overview
            counts, last_at = _count(db, project)
            return overview._replace(counts=counts, last_at=last_at)
        overview = Overview(*_count(db, project), _activity(db, project, now), *_spark(db, project))
        # What has changed since is not in these rows: they are read again the next time.
        self._known[project] = min(newest, revision), day, overview
        return overview


def _count(db: Connection, project: int) -> tuple[dict[str, int], float]:
    """How many runs are in which state, and when something last happened."""
    rows = db.execute(
        "SELECT state, count(*) AS count, "
        "max(max(created_at, coalesce(heartbeat_at, 0), coalesce(ended_at, 0))) AS last_at "
        "FROM runs WHERE project = ? GROUP BY state",
        (project,),
    ).fetchall()
    last_at = max((row["last_at"] for row in rows), default=0.0)
    return {row["state"]: row["count"] for row in rows}, last_at


def _activity(db: Connection, project: int, now: float) -> list[int]:
    begin = now - DAYS * _DAY
    days = [0] * DAYS
    for row in db.execute(
        "SELECT CAST((created_at - ?) / ? AS INTEGER) AS day, count(*) AS count "
        "FROM runs WHERE project = ? AND created_at >= ? GROUP BY day",
        (begin, _DAY, project, begin),
    ):
        days[min(row["day"], DAYS - 1)] += row["count"]
    return days


def _spark(db: Connection, project: int) -> tuple[str | None, list[float]]:
    """A metric of the newest run that logged any, thinned out to a thumbnail."""
    newest = db.execute(
        "SELECT key, config FROM runs WHERE project = ? ORDER BY created_at DESC LIMIT 5",
        (project,),
    ).fetchall()
    for row in newest:
        keys = names_of_run(db, row["key"], HISTORY)
        defined = of_metrics(read_defined(parse(row["config"])), keys)
        hidden = {name for name, metric in defined.items() if metric["hidden"]}
        names = sorted(name for name in keys if not name.startswith("_") and name not in hidden)
        for name in sorted(names, key=_dullness):
            curve = read_curve(db, row["key"], HISTORY, keys[name], _SPARK)
            if curve is not None and len(curve.last) > 1:
                return name, curve.last.tolist()
    return None, []


def _dullness(name: str) -> int:
    """What people look at first comes first."""
    words = ("loss", "acc", "reward", "score", "error")
    return next((place for place, word in enumerate(words) if word in name.lower()), len(words))
