"""Posts of an earlier attempt of a trial that has been handed out again: its node was cut off from
the network, and is heard again before its agent knows.

The key of a post tells: each agent has one of its own, which its programs come with. Where two
attempts came with the same key, nobody can tell them apart, and a post is the newest client's.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection

from runyard.server.history import archives
from runyard.server.history.history import HISTORY
from runyard.server.history.merging import Merge
from runyard.server.processes import attempts, clients
from runyard.server.store.sql import Row
from runyard.server.store.store import Needed, Slice


@dataclass(frozen=True)
class Late:
    """Who sent a post, and which of its rows are the run's all the same."""

    client: Row
    # Rows that were logged until then: what the present attempt goes on from.
    until: float
    # The present attempt has ended and logged nothing: what comes is the end of the history.
    is_last: bool = False


def sender(db: Connection, trial: Row | None, key_id: str, now: float) -> Late | None:
    """The client of an earlier attempt that a post is from; None if it is not late.

    Until the attempt has told from where it goes on, or has begun, rows are taken in as usual: what
    it logs once more is put aside then.
    """
    if trial is None:
        return None
    earlier: int = trial["clients"]
    client = clients.of_earlier_attempt(db, trial["run"], key_id, earlier)
    if client is None:
        return None
    if clients.newest_after(db, trial["run"], earlier) is None:
        is_judged = trial["rewound_to"] is not None and not _had_it_before(db, trial)
        return Late(client, trial["rewound_to"]) if is_judged else None
    # Rows in between would change the numbers of those that its client sends.
    is_over = not clients.have_open(db, trial["run"], earlier)
    is_last = is_over and not clients.have_logged(db, trial["run"], earlier, HISTORY)
    return Late(client, now if is_last else 0.0, is_last)


def _had_it_before(db: Connection, trial: Row) -> bool:
    """Whether the trial's agent had an earlier attempt of it too, with the same key.

    A program that names no host begins no client: its rows could be the present attempt's.
    """
    return any(
        attempt["agent"] == trial["agent"] and attempt["number"] != trial["attempt"]
        for attempt in attempts.of_run(db, trial["run"])
    )


def put(
    db: Connection, run: Row, late: Late, stream: int, start: int, rows: Sequence[str], now: float
) -> None:
    """Store rows: in the run what belongs there, the others aside.

    Raises `Needed` where the rows are to be merged with others first.
    """
    if not rows:
        return
    known = clients.known_row_number(late.client, stream, start)
    first = start + clients.first_shift(late.client, stream, start) if known is None else known
    count = len(rows) if late.is_last else _count_until(rows, late.until)

    def put_aside(db: Connection) -> None:
        client = clients.get(db, late.client)
        more = rows[count:]
        if more:
            number = archives.put_late(db, run, client["late"], stream, first + count, more, now)
            clients.set_late(db, client, number)

    if count:
        raise Needed(run["key"], _MergeFirst(run["key"], stream, rows[:count], put_aside))
    put_aside(db)


class _MergeFirst(Merge):
    """Merges the first rows of a post, and puts the others aside."""

    def __init__(self, run: int, stream: int, lines: Sequence[str], put_aside: Slice) -> None:
        super().__init__(run, stream, lines)
        self._put_aside: Slice | None = put_aside

    def plan(self, db: Connection) -> Slice | None:
        part = super().plan(db)
        return part or self._last()

    def _last(self) -> Slice | None:
        put_aside = self._put_aside
        if put_aside is None:
            return None

        def last(db: Connection) -> None:
            put_aside(db)
            self._put_aside = None

        return last


def _count_until(rows: Sequence[str], until: float) -> int:
    """How many of the first rows were logged until then."""
    for number, line in enumerate(rows):
        time = _time(line)
        if time is None or time > until:
            return number
    return len(rows)


def _time(line: str) -> float | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    time = row.get("_timestamp") if isinstance(row, dict) else None
    return time if type(time) in (int, float) else None
