"""The processes that wrote to a run, one after the other or at once, and how each ended.

A run that is resumed, synced or shared has several. Each numbers its rows and its console lines in
its own way: which of them are the run's is found out here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from sqlite3 import Connection

from runyard.server.history import archives
from runyard.server.history.history import EVENTS, HISTORY, count_rows
from runyard.server.processes.console_lines import count_lines, get_lines
from runyard.server.processes.origins import Origin
from runyard.server.runs import states
from runyard.server.store import sql
from runyard.server.store.sql import Row, fetch_number, fetch_one
from runyard.server.store.store import Needed

# Some clients tell the start of a process in whole seconds.
_SAME_START, _SAME_SECOND = 0.05, 1.1
# Between the start of a process and its first words to us, where it tells only of the latter.
_LONGEST_INIT = 20.0
# Between a client's question where a run stopped and its first words to it, retries included.
_LONGEST_QUESTION = 600.0
_NAMES = {HISTORY: "history", EVENTS: "events"}


def begin(
    db: Connection,
    run: int,
    kind: str,
    *,
    writer: str = "",
    started_at: float | None = None,
    archive: int | None = None,
    key_id: str = "",
    now: float,
) -> int:
    number = count(db, run) + 1
    columns = {"run": run, "number": number, "kind": kind, "writer": writer, "key_id": key_id}
    columns |= {"began_at": now, "started_at": started_at, "heard_at": now, "archive": archive}
    rows = {f"{name}_told": count_rows(db, run, stream) for stream, name in _NAMES.items()}
    sql.insert(db, "clients", columns | rows)
    return number


def of_run(db: Connection, run: int) -> list[Row]:
    return db.execute("SELECT * FROM clients WHERE run = ? ORDER BY number", (run,)).fetchall()


def speaking(db: Connection, run: Row, writer: str, now: float) -> tuple[Row | None, bool]:
    """Who a post is from, and whether a sync may have sent it: only shared writers name themselves.

    A sync is soon over. Until it has long been silent, one of its posts may come again.
    """
    if writer:
        return _newest(db, run["key"], "writer = ?", writer), False
    sync = _newest(db, run["key"], "kind = 'sync'")
    if sync is None:
        return _newest(db, run["key"], "writer = ''"), False
    is_recent = sync["heard_at"] > now - states.SILENT_SECONDS
    if is_recent and sync["ended_at"] is None:
        return sync, True
    living = _newest(db, run["key"], "kind = 'live' AND ended_at IS NULL")
    is_alive = living is not None and run["state"] in states.ALIVE
    return (living if is_alive else sync if is_recent else living or sync), is_recent


def _newest(db: Connection, run: int, where: str, *values: object) -> Row | None:
    return fetch_one(
        db,
        f"SELECT * FROM clients WHERE run = ? AND {where} ORDER BY number DESC LIMIT 1",
        (run, *values),
    )


def newest(db: Connection, run: int) -> Row | None:
    """The process that wrote to a run last."""
    return _newest(db, run, "1")


def newest_after(db: Connection, run: int | None, number: int) -> Row | None:
    """The process that wrote to a run last, if it came after the one of that number; no sync."""
    if run is None:
        return None
    return _newest(db, run, "kind != 'sync' AND number > ?", number)


def is_past(client: Row | None, trial: Row) -> bool:
    """Whether a client is of an attempt that the trial is not in any more.

    Its rows are the run's; what it says of its life is not about the attempt that runs now. Nor do
    last words that are said again change how a trial was settled.
    """
    if client is None or client["kind"] == "sync":
        return False
    is_settled = trial["state"] != "running" and trial["lost"] is None
    return client["number"] <= trial["clients"] or (is_settled and client["ended_at"] is not None)


def of_earlier_attempt(db: Connection, run: int, key_id: str, earlier: int) -> Row | None:
    """The client of an attempt before the present one that comes with this key.

    None where that is not certain: several processes of an attempt have one key, and so may several
    attempts. `earlier`: how many clients the run had before its present attempt.
    """
    if not key_id or not earlier:
        return None
    client = _newest(db, run, "key_id = ?", key_id)
    if client is None or client["number"] > earlier or client["kind"] != "live":
        return None
    where = "number > ? AND kind != 'sync' AND key_id = ''"
    return None if _newest(db, run, where, earlier) is not None else client


def set_late(db: Connection, client: Row, archive: int) -> None:
    _set(db, client, late=archive)


def note_key(db: Connection, run: int, key_id: str, writer: str) -> None:
    """A client begins that is taken for the newest one: with another key it is a process beside it,
    and nobody can tell by their keys what is whose."""
    newest = _newest(db, run, "writer = ?", writer)
    if newest is not None and newest["key_id"] != key_id:
        _set(db, newest, key_id="")


def count(db: Connection, run: int) -> int:
    """The number of the process that wrote to a run last; syncs count."""
    return fetch_number(db, "SELECT coalesce(max(number), 0) FROM clients WHERE run = ?", (run,))


def is_known(
    db: Connection, run: Row, kind: str, writer: str, started_at: float | None, *, earlier: int
) -> bool:
    """Whether the process that speaks has begun before: newer ones name their host again.

    They do so when the run's name or tags change, and then tell when they started; with their
    first words they do not. `earlier`: how many clients the run had before its present attempt.
    """
    newest = _newest(db, run["key"], "writer = ?", writer)
    if newest is None or newest["ended_at"] is not None or newest["kind"] != kind:
        return False
    if newest["number"] <= earlier:
        return False
    if newest["started_at"] is None:
        return run["state"] in states.ALIVE
    if started_at is None:
        return False
    return is_same_start(newest["started_at"], started_at)


def ask_to_resume(db: Connection, run: int, now: float) -> None:
    """A client wants to know where the run stopped: it will go on there."""
    db.execute("INSERT OR REPLACE INTO resume_questions (run, asked_at) VALUES (?, ?)", (run, now))


def has_asked_to_resume(db: Connection, run: int, now: float) -> bool:
    row = db.execute("SELECT asked_at FROM resume_questions WHERE run = ?", (run,)).fetchone()
    if row is None:
        return False
    db.execute("DELETE FROM resume_questions WHERE run = ?", (run,))
    return bool(now - row["asked_at"] < _LONGEST_QUESTION)


def hear(db: Connection, client: Row, now: float) -> None:
    if client["kind"] == "sync":
        _set(db, client, heard_at=now)


def end(db: Connection, client: Row, exit_code: int, now: float) -> None:
    _set(db, client, ended_at=now, exit_code=exit_code)


def reopen(db: Connection, client: Row) -> None:
    """It has not ended, after all."""
    _set(db, client, ended_at=None, exit_code=None)


def exit_code_of(db: Connection, run: int, default: int) -> int:
    """What the newest process that was no sync ended with, if it said so."""
    client = newest_after(db, run, 0)
    return default if client is None or client["exit_code"] is None else client["exit_code"]


def note(db: Connection, run: int, origin: Origin, writer: str) -> None:
    """What a client tells of itself later than with its first words.

    Raises `Needed` where an archive is to be brought back first.
    """
    if not origin.is_known:
        return
    newest = _newest(db, run, "writer = ?", writer)
    if newest is None:
        return
    if origin.started_at is not None and newest["started_at"] is None:
        _set(db, newest, started_at=origin.started_at)
    if origin.is_sync and newest["kind"] == "live":
        if newest["archive"] is not None and archives.is_there(db, run, newest["archive"]):
            raise Needed(run, archives.Restore(run, newest["archive"]))
        _set(db, newest, kind="sync")


def has_logged(client: Row, stream: int) -> bool:
    return client[f"{_NAMES[stream]}_shift"] is not None


def last_logged(db: Connection, client: Row, *, after: int) -> Row | None:
    """The last process before this one that logged, if it came after the one of that number."""
    where = "kind = 'live' AND history_shift IS NOT NULL AND number > ? AND number < ?"
    return _newest(db, client["run"], where, after, client["number"])


def have_logged(db: Connection, run: int, after: int, stream: int) -> bool:
    """Whether a process did that came after the one of that number."""
    later = (client for client in of_run(db, run) if client["number"] > after)
    return any(has_logged(client, stream) for client in later)


def have_open(db: Connection, run: int, after: int) -> bool:
    """Whether a process that came after the one of that number has not said that it ends."""
    later = (client for client in of_run(db, run) if client["number"] > after)
    return any(client["ended_at"] is None for client in later)


def get(db: Connection, client: Row) -> Row:
    """As it is now."""
    newest = _newest(db, client["run"], "number = ?", client["number"])
    assert newest is not None
    return newest


def set_unheard(db: Connection, client: Row, unheard: str) -> None:
    _set(db, client, unheard=unheard)


def row_number(
    db: Connection, client: Row, stream: int, number: int, has_rows: bool, more: int = 0
) -> int:
    """The run's number of a row that the client calls `number`.

    A client that goes on is told how many rows there are, and most number theirs from there. One
    that begins at zero all the same must not overwrite what others wrote. `more`: rows that came
    back since it was told.
    """
    known = known_row_number(client, stream, number)
    if known is not None:
        return known
    shift = first_shift(client, stream, number) + more
    if has_rows:
        _set(db, client, **{f"{_NAMES[stream]}_shift": shift})
    return number + shift


def first_shift(client: Row, stream: int, number: int) -> int:
    """What is added to the numbers of a client that begins with this one, if no rows came back."""
    known_rows: int = client[f"{_NAMES[stream]}_told"]
    return known_rows if number < known_rows else 0


def set_shifts(db: Connection, shifts: Sequence[tuple[int, int, int, int]]) -> None:
    """Clients have logged their first rows: run, number of the client, stream, shift."""
    for stream, name in _NAMES.items():
        some = {f"{run} {number}": shift for run, number, into, shift in shifts if into == stream}
        if some:
            ours = [(run, number) for run, number, into, _ in shifts if into == stream]
            # Not `UPDATE ... FROM`, which old versions of SQLite do not know.
            db.execute(
                f"UPDATE clients SET {name}_shift = "
                "json_extract(:shifts, '$.\"' || run || ' ' || number || '\"') "
                "WHERE (run, number) IN (SELECT json_extract(value, '$[0]'), "
                "json_extract(value, '$[1]') FROM json_each(:ours))",
                {"shifts": json.dumps(some), "ours": json.dumps(ours)},
            )


def known_row_number(client: Row, stream: int, number: int) -> int | None:
    """The same of a client that has logged before; None of others."""
    shift: int | None = client[f"{_NAMES[stream]}_shift"]
    return None if shift is None else number + shift


def speaks_last(db: Connection, run: int, client: Row) -> bool:
    """Whether the end that a sync reports is the run's.

    The process that started last decides how its run ended, and its own word outweighs that of a
    sync, which does not always know.
    """
    for other in of_run(db, run):
        if other["number"] == client["number"] or other["ended_at"] is None:
            continue
        if is_same(client, other):
            if other["kind"] != "sync":
                return False
        elif start_of(other) > start_of(client):
            return False
        elif client["started_at"] is None and other["kind"] != "sync":
            return False  # Without a start it may be that very process.
    return True


def is_same(client: Row, other: Row) -> bool:
    """Whether two clients brought the data of one process."""
    if client["started_at"] is None:
        client, other = other, client
    if client["started_at"] is None:
        return False
    if other["started_at"] is None:
        return bool(-_SAME_SECOND <= other["began_at"] - client["started_at"] <= _LONGEST_INIT)
    return is_same_start(client["started_at"], other["started_at"])


def is_same_start(start: float, other: float) -> bool:
    is_rounded = start == int(start) or other == int(other)
    return abs(start - other) <= (_SAME_SECOND if is_rounded else _SAME_START)


def start_of(client: Row) -> float:
    started: float = client["began_at"] if client["started_at"] is None else client["started_at"]
    return started


def output_stream(client: Row | None) -> str:
    """Where the console lines of a client are."""
    return "output" if client is None else f"output.{client['number']}"


def console_streams(db: Connection, run: int) -> list[str]:
    """The streams that make a run's console, in order; of two that tell the same, the longer."""
    chosen: list[tuple[Row, int]] = []
    everyone = of_run(db, run)
    # What was printed before the run was begun anew is no more the run's than its rows are.
    anew = max(
        (writer["number"] for writer in everyone if writer["archive"] is not None), default=0
    )
    streams = [
        (client, count_lines(db, run, output_stream(client)))
        for client in everyone
        if client["number"] >= anew
    ]
    for client, count in streams:
        twin = next(
            (
                place
                for place, (other, _) in enumerate(chosen)
                if "sync" in (client["kind"], other["kind"]) and is_same(client, other)
            ),
            None,
        )
        if twin is None:
            chosen.append((client, count))
        elif count >= chosen[twin][1]:
            chosen[twin] = (client, count)
    chosen.sort(key=lambda writer: start_of(writer[0]))
    named = [output_stream(client) for client, _ in chosen]
    return ["output", *named] if not named or count_lines(db, run, "output") else named


def console_lines(db: Connection, run: int) -> Iterator[str]:
    """A run's console as its clients sent it, one client's lines after the other's."""
    for stream in console_streams(db, run):
        for _, line in get_lines(db, run, stream):
            yield line


def count_console(db: Connection, run: int) -> int:
    """How many console lines a client that resumes is told there are."""
    return max(
        count_lines(db, run, "output"),
        *(count_lines(db, run, output_stream(client)) for client in of_run(db, run)),
        0,
    )


def _set(db: Connection, client: Row, **columns: object) -> None:
    place = {"run": client["run"], "number": client["number"]}
    sql.update(db, "clients", place, columns)
