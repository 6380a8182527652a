"""What one file_stream post changes: lines, the summary, signs of life, the end."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from sqlite3 import Connection
from typing import Any, NamedTuple

from runyard.server.history import archives
from runyard.server.history.history import HISTORY, count_rows, put_rows, put_shared_rows
from runyard.server.history.merging import Merge
from runyard.server.history.unrepeated import count_repeated, unrepeated_rows
from runyard.server.processes import attempts, clients, returned_rows
from runyard.server.processes.console_lines import put_lines
from runyard.server.processes.origins import read_origin
from runyard.server.runs import runs, states
from runyard.server.store.sql import Row
from runyard.server.store.store import Needed
from runyard.server.sweeps.ledger import leases, trials
from runyard.server.tracking import late_posts

# Characters of rows: some 20 ms of the writer's time.
LARGEST_PART = 500_000


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
    writer: str = ""
    # The id of the key that the client came with.
    key_id: str = ""

    @property
    def size(self) -> int:
        """Characters of rows and of console lines."""
        parts = (*self.rows.values(), self.output)
        return sum(sum(map(len, lines)) for _, lines in parts)

    def parts(self) -> Iterator[Post]:
        """The same in posts of which none holds the writer for long; all but rows in the last."""
        if self.size <= LARGEST_PART:
            yield self
            return
        rows = dict(self.rows)
        for stream, (start, lines) in self.rows.items():
            size, first = 0, 0
            for number, line in enumerate(lines):
                size += len(line)
                if size > LARGEST_PART and number > first:
                    part = {stream: (start + first, lines[first:number])}
                    yield Post(rows=part, writer=self.writer, key_id=self.key_id)
                    size, first = len(line), number
            rows[stream] = (start + first, lines[first:])
        yield replace(self, rows=rows)

    def without(self, stream: int) -> Post:
        """The rest, once the rows of a stream are merged."""
        return replace(self, rows={**self.rows, stream: (0, ())})


class Recorded(NamedTuple):
    run: int
    stop_asked: bool
    # The trial that the run is, if it is one; and the number that its first new row has.
    trial: Row | None = None
    place: int | None = None


def record(
    db: Connection, entity: str, project: str, run_id: str, post: Post, now: float
) -> Recorded | None:
    """Store a post. Says of which run, and whether that shall stop; None if there is none.

    Raises `Needed` where the rows are to be merged with others first; the rest of the post comes
    after that.
    """
    row = runs.by_path(db, entity, project, run_id)
    if row is None:
        return None
    key: int = row["key"]
    trial = None if row["sweep"] is None else trials.by_run(db, key)
    late = None if post.writer else late_posts.sender(db, trial, post.key_id, now)
    places: dict[int, int | None] = {}
    if late is None:
        client, may_be_sync = clients.speaking(db, row, post.writer, now)
        for stream, (start, rows) in post.rows.items():
            places[stream] = _put(db, row, client, may_be_sync, stream, start, rows, now)
    else:
        client = late.client
        for stream, (start, rows) in post.rows.items():
            late_posts.put(db, row, late, stream, start, rows, now)
    put_lines(db, key, clients.output_stream(client), *post.output)
    is_past = trial is not None and clients.is_past(client, trial)
    columns: dict[str, object] = {"seen_client": 1}
    if post.summary is not None and (late is None or late.is_last):
        is_one_of_many = client is not None and client["kind"] != "live"
        if is_one_of_many:
            columns["summary"] = _merge_summaries(
                row["summary"], post.summary, shared=bool(post.writer)
            )
        elif client is None or row["sweep"] is None:
            columns["summary"] = post.summary
        else:
            columns["summary"] = returned_rows.correct(db, client, post.summary)
    if not is_past:
        columns["heartbeat_at"] = now
        if post.preempting:
            columns["preempting"] = 1
        if client is not None and client["kind"] == "sync":
            columns |= _state_after_sync(db, row, client, post, now)
        else:
            columns |= _state_after(db, row, post, now)
    if client is not None:
        clients.hear(db, client, now)
        if post.complete:
            clients.end(db, client, post.exit_code, now)
    runs.update(db, key, **columns)
    if is_past or (client is not None and client["kind"] == "sync"):
        trial = None
    elif trial is not None:
        ended = columns.get("state", "running") not in states.ALIVE
        trial = leases.hear_client(db, row, now, ended=ended, exit_code=post.exit_code)
    return Recorded(key, bool(row["stop_asked"]), trial, places.get(HISTORY))


def _put(
    db: Connection,
    row: Row,
    client: Row | None,
    may_be_sync: bool,
    stream: int,
    start: int,
    rows: Sequence[str],
    now: float,
) -> int | None:
    """Store rows. The number that the first of them has now, where they are in a row."""
    run: int = row["key"]
    if client is None:
        put_rows(db, run, stream, start, rows)
        return start
    if client["kind"] == "shared":
        put_shared_rows(db, run, stream, client["writer"], start, rows)
    elif may_be_sync or client["kind"] == "sync" or _is_of_another(db, row, client, stream):
        if rows:
            raise Needed(run, Merge(run, stream, rows))
    else:
        more = 0
        if rows and stream == HISTORY and not clients.has_logged(client, stream):
            more = _fit(db, row, client, rows[0], now)
        place = clients.row_number(db, client, stream, start, bool(rows), more)
        goes_on = stream == HISTORY and place + len(rows) > count_rows(db, run, stream)
        if client["ended_at"] is not None and goes_on and trials.is_at_work(db, run):
            clients.reopen(db, client)  # It was another process of the trial that has ended.
        put_rows(db, run, stream, place, rows)
        return place
    return None


def _is_of_another(db: Connection, row: Row, client: Row, stream: int) -> bool:
    """Whether rows of a trial cannot be of its present attempt: all its processes have ended, and
    the newest without any rows.

    They are of an attempt before, whose node was cut off and is heard again.
    """
    if client["ended_at"] is None or clients.has_logged(client, stream):
        return False
    earlier = trials.earlier_clients(db, row["key"])
    return 0 < earlier < client["number"] and not clients.have_open(db, row["key"], earlier)


def _fit(db: Connection, row: Row, client: Row, first: str, now: float) -> int:
    """A trial goes on, at this row: what does not come again is the run's, what does is not.

    How many rows the run has more than its client was told.
    """
    key: int = row["key"]
    # A run that a sweep was told of as tried names it too.
    trial = None if row["sweep"] is None else trials.by_run(db, key)
    if trial is None or not _follows_a_cut(db, trial, client):
        return 0  # Who rewinds a run by hand means it.
    end = count_rows(db, key, HISTORY)
    repeated = count_repeated(db, key, first)
    if repeated:
        archives.put_end_aside(db, row, end - repeated, now)
        return -repeated
    lines = unrepeated_rows(db, key, first)
    returned_rows.bring_back(db, key, lines)
    return len(lines)


def _follows_a_cut(db: Connection, trial: Row, client: Row) -> bool:
    """Whether a client that logs its first row goes on with what was cut off.

    In one attempt a program may follow another that has ended well: it evaluates what that trained.
    """
    before = clients.last_logged(db, client, after=trial["clients"])
    return bool(trial["attempts"] > 1 if before is None else before["exit_code"] != 0)


def _state_after_sync(
    db: Connection, row: Row, client: Row, post: Post, now: float
) -> dict[str, object]:
    """A sync tells of what is over. What was reported by who was there stands."""
    attempt = attempts.last(db, row["key"])
    if attempt is not None and (attempt["exit_code"] is not None or attempt["ended_at"] is None):
        return {}
    others = [other for other in clients.of_run(db, row["key"]) if other["kind"] != "sync"]
    if any(other["ended_at"] is None for other in others) and row["state"] in states.ALIVE:
        return {}  # The run is still being written.
    if not post.complete:
        return {} if others else runs.revived(row)
    if not clients.speaks_last(db, row["key"], client):
        return {}
    fell_silent = row["state"] in ("crashed", "preempted") and row["exit_code"] is None
    origin = read_origin(row["config"], None)
    if fell_silent and others and post.exit_code == 0 and not origin.knows_end:
        return {}
    return {
        "state": states.after_completion(post.exit_code, preempting=bool(row["preempting"])),
        "exit_code": post.exit_code,
        "ended_at": row["ended_at"] if fell_silent else now,
    }


def _state_after(db: Connection, row: Row, post: Post, now: float) -> dict[str, object]:
    attempt = attempts.last(db, row["key"])
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
            "state": runs.end_state(row, state),
            "exit_code": post.exit_code,
            "ended_at": now,
        }
    if post.preempting:
        return {"state": "preempting", "exit_code": None, "ended_at": None}
    return runs.revived(row)


def mark_silent(db: Connection, before: float) -> int:
    """Runs that were last heard before that time are not alive any more."""
    rows = db.execute(
        # W&B's scheduler never says that its log has ended.
        "SELECT key, preempting, stop_asked, heartbeat_at, EXISTS (SELECT 1 FROM sweeps "
        "WHERE sweeps.project = runs.project AND sweeps.id || '-scheduler' = runs.id) AS is_log "
        "FROM runs "
        "WHERE state IN ('running', 'preempting') AND heartbeat_at < ? "
        # A trial at work has a lease, which tells sooner and better.
        "AND NOT EXISTS (SELECT 1 FROM trials WHERE trials.run = runs.key "
        "AND trials.state = 'running')",
        (before,),
    ).fetchall()
    for row in rows:
        silent = states.after_silence(preempting=bool(row["preempting"]))
        state = runs.end_state(row, "finished" if row["is_log"] else silent)
        runs.update(db, row["key"], state=state, ended_at=row["heartbeat_at"])
        attempts.lose_open(db, row["key"], row["heartbeat_at"])
    return len(rows)


def _merge_summaries(stored: str, newer: str, *, shared: bool) -> str:
    """Key by key: of writers at once the one that speaks wins, of segments the later one."""
    old, new = json.loads(stored), json.loads(newer)
    if shared or not old or _when(new) >= _when(old):
        return json.dumps({**old, **new})
    return json.dumps({**new, **old})


def _when(summary: dict[str, Any]) -> tuple[float, float]:
    return _number(summary.get("_step")), _number(summary.get("_timestamp"))


def _number(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number else -1.0
