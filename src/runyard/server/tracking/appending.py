"""Posts of many runs in one change. Those that only go on with a run need few statements for all.

With thousands of runs that log every second, a dozen statements a post would be most of the
server's work: each lets other threads run, and has to wait for its turn again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from sqlite3 import Connection
from typing import NamedTuple

from runyard.server.history import pieces
from runyard.server.history.columns import encode
from runyard.server.history.history import EVENTS, HISTORY
from runyard.server.history.metric_keys import number_keys
from runyard.server.processes import clients
from runyard.server.processes.console_lines import put_lines
from runyard.server.runs import runs
from runyard.server.store.database import Outcome, in_savepoint
from runyard.server.store.sql import Row
from runyard.server.sweeps.ledger import late_results
from runyard.server.tracking.streams import Post, Recorded, record

Place = tuple[str, str, str]
"""Entity, project and id of a run."""

_COUNT = (
    "max(coalesce((SELECT stop FROM batches WHERE run = runs.key AND stream = {0} "
    "ORDER BY start DESC LIMIT 1), 0), coalesce((SELECT stop FROM segments WHERE run = runs.key "
    "AND stream = {0} ORDER BY start DESC LIMIT 1), 0))"
)
# Of each run what `record` would look at, if a client at work is the newest and none was a sync.
_AT_WORK = f"""
SELECT projects.entity, projects.name AS project, runs.id, runs.key, runs.stop_asked, clients.*,
    {_COUNT.format(HISTORY)} AS history_count, {_COUNT.format(EVENTS)} AS events_count
FROM json_each(?) AS asked
CROSS JOIN projects ON projects.entity = json_extract(asked.value, '$[0]')
    AND projects.name = json_extract(asked.value, '$[1]') AND {runs.NOT_TRASH}
CROSS JOIN runs ON runs.project = projects.key AND runs.id = json_extract(asked.value, '$[2]')
CROSS JOIN clients ON clients.run = runs.key
    AND clients.number = (SELECT max(number) FROM clients WHERE clients.run = runs.key)
WHERE runs.state = 'running' AND runs.sweep IS NULL
    AND clients.kind = 'live' AND clients.writer = ''
    AND NOT EXISTS (
        SELECT 1 FROM clients AS other WHERE other.run = runs.key AND other.kind = 'sync'
    )
"""


class Arrived(NamedTuple):
    """A post, and the run that it is for."""

    place: Place
    post: Post


def record_all(db: Connection, arrived: Sequence[Arrived], now: float) -> list[Outcome]:
    """`record` for each post, in their order; one that fails undoes itself alone."""
    appended: Mapping[int, Recorded] = {}
    if len(arrived) > 1:
        # Whatever fails here fails below once more, and there alone.
        appended = in_savepoint(db, lambda db: _append_all(db, arrived, now))[0] or {}
    return [
        (appended[number], None) if number in appended else _record_one(db, item, now)
        for number, item in enumerate(arrived)
    ]


def _record_one(db: Connection, item: Arrived, now: float) -> Outcome:
    return in_savepoint(db, lambda db: _record(db, item, now))


def _record(db: Connection, item: Arrived, now: float) -> Recorded | None:
    recorded = record(db, *item.place, item.post, now)
    is_at_work = recorded is not None and recorded.trial and recorded.trial["state"] == "running"
    if recorded is not None and not is_at_work and (item.post.rows or item.post.summary):
        late_results.measure_again(db, recorded.run, now)
    return recorded


def _append_all(db: Connection, arrived: Sequence[Arrived], now: float) -> dict[int, Recorded]:
    """Store the posts that only go on with a run that is at work; which they are."""
    # Of a run's posts the first alone: what the second finds is what the first has made of it.
    first = {item.place: number for number, item in reversed(list(enumerate(arrived)))}
    places = [
        place
        for place, number in first.items()
        # SQLite's texts out of JSON end at a NUL: it would be another run's.
        if _may_append(arrived[number].post) and "\0" not in "".join(place)
    ]
    if not places:
        return {}
    at_work = db.execute(_AT_WORK, (json.dumps(places),)).fetchall()
    numbered = _KeyNumbers(db)
    appended = dict[int, Recorded]()
    rows = list[tuple[int, int, int, int, bytes]]()
    shifts = list[tuple[int, int, int, int]]()
    for run in at_work:
        place = (run["entity"], run["project"], run["id"])
        number = first[place]
        post = arrived[number].post
        starts = _starts(run, post)
        if starts is None:
            continue
        for stream, start in starts.items():
            first_number, lines = post.rows[stream]
            if lines:
                if not clients.has_logged(run, stream):
                    shifts.append((run["key"], run["number"], stream, start - first_number))
                blob = encode(lines, numbered)
                rows.append((run["key"], stream, start, start + len(lines), blob))
        put_lines(db, run["key"], clients.output_stream(run), *post.output)
        appended[number] = Recorded(run["key"], bool(run["stop_asked"]), None, starts.get(HISTORY))
    if appended:
        pieces.store_batches(db, rows)
        clients.set_shifts(db, shifts)
        heard = [(done.run, arrived[number].post.summary) for number, done in appended.items()]
        runs.hear(db, heard, now)
    return appended


def _may_append(post: Post) -> bool:
    return not (post.writer or post.complete or post.preempting)


def _starts(run: Row, post: Post) -> dict[int, int] | None:
    """The numbers of a post's first rows in its run; None if one is taken."""
    starts = dict[int, int]()
    for stream, (number, _) in post.rows.items():
        start = clients.known_row_number(run, stream, number)
        if start is None:
            start = number + clients.first_shift(run, stream, number)
        if start < run["history_count" if stream == HISTORY else "events_count"]:
            return None
        starts[stream] = start
    return starts


class _KeyNumbers:
    """`number_keys` for one change: each name is asked for once."""

    def __init__(self, db: Connection) -> None:
        self._db = db
        self._known = dict[str, int]()

    def __call__(self, names: Iterable[str]) -> Mapping[str, int]:
        unknown = [name for name in names if name not in self._known]
        if unknown:
            self._known |= number_keys(self._db, unknown)
        return self._known
