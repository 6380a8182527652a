"""Attempts: executions that runyard itself started, with the console it saw.

Every call can be repeated: a starter that got no answer asks again and changes nothing.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Sequence
from sqlite3 import Connection
from typing import Any

from runyard.server.processes import clients
from runyard.server.runs import runs, states
from runyard.server.store.sql import Row, fetch_number, fetch_one


class NoAttempt(LookupError):
    """The run has no attempt of that number."""

    def __init__(self, number: int) -> None:
        super().__init__(f"the run has no attempt {number}")


class ConsoleGap(ValueError):
    """The console goes on behind what is stored; `stored` is where to go on from."""

    def __init__(self, stored: int) -> None:
        super().__init__()
        self.stored = stored


def begin(
    db: Connection,
    run: int,
    *,
    token: str,
    host: str,
    pid: int,
    now: float,
    at_least: int = 1,
    agent: int | None = None,
) -> int:
    """Start the next attempt of a run and return its number, which is at least that."""
    known = db.execute(
        "SELECT number FROM attempts WHERE run = ? AND token = ?", (run, token)
    ).fetchone()
    if known is not None:
        return int(known["number"])
    lose_open(db, run, now)
    number = fetch_number(
        db,
        "SELECT max(coalesce(max(number), 0) + 1, ?) FROM attempts WHERE run = ?",
        (at_least, run),
    )
    db.execute(
        "INSERT INTO attempts (run, number, token, host, pid, started_at, agent) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (run, number, token, host, pid, now, agent),
    )
    runs.update(
        db,
        run,
        state="running",
        preempting=0,
        stop_asked=0,
        heartbeat_at=now,
        exit_code=None,
        ended_at=None,
    )
    runs.note_start(db, run, now)
    return number


def append_console(
    db: Connection, run: int, number: int, start: int, data: bytes, heard_at: float | None
) -> int:
    """Store console bytes from `start` on; what is there already is passed over.

    `heard_at` is when the process beside the program sent them; None if it is dead.
    """
    attempt = get(db, run, number)
    stored: int = attempt["console_bytes"]
    if start > stored:
        raise ConsoleGap(stored)
    fresh = data[stored - start :]
    if fresh:
        db.execute(
            "INSERT INTO console (run, attempt, start, data) VALUES (?, ?, ?, ?)",
            (run, number, stored, zlib.compress(fresh, 1)),
        )
        stored += len(fresh)
        db.execute(
            "UPDATE attempts SET console_bytes = ? WHERE run = ? AND number = ?",
            (stored, run, number),
        )
    if heard_at is not None and attempt["exit_code"] is None and _is_last(db, run, number):
        _hear(db, run, number, heard_at)
    return stored


def _hear(db: Connection, run: int, number: int, now: float) -> None:
    """A sign of life; one that was given up as lost is here after all."""
    reopen(db, run, number)
    row = runs.by_key(db, run)
    if row is not None:
        runs.update(db, run, heartbeat_at=now, **runs.revived(row))


def end(
    db: Connection,
    run: int,
    number: int,
    *,
    exit_code: int,
    ended_at: float,
    cause: str | None = None,
    speaks: bool = True,
) -> bool:
    """The program ended; what its process returned outweighs what its client said.

    `cause` is why, where who stood beside it knows more than the exit code tells. `speaks`: it is
    the run's end too, if it is the newest attempt. Says whether it was.
    """
    attempt = get(db, run, number)
    if attempt["exit_code"] is not None:
        return False  # Told before, and the run may have gone on since.
    db.execute(
        "UPDATE attempts SET ended_at = ?, exit_code = ?, cause = ? WHERE run = ? AND number = ?",
        (ended_at, states.shell_code(exit_code), cause or states.cause_of(exit_code), run, number),
    )
    row = runs.by_key(db, run)
    speaks = speaks and row is not None and _is_last(db, run, number)
    if row is not None and speaks:
        if row["left_behind"]:
            # Its program went on to other runs: how this one ended, its own client has said.
            exit_code = clients.exit_code_of(db, run, exit_code)
        state = states.after_exit(exit_code, preempting=bool(row["preempting"]))
        runs.update(
            db,
            run,
            state=runs.end_state(row, state),
            exit_code=states.shell_code(exit_code),
            ended_at=ended_at,
        )
    return speaks


def set_usage(db: Connection, run: int, number: int, usage: str) -> None:
    """What an attempt has used so far; the last word counts."""
    db.execute(
        "UPDATE attempts SET usage = ? WHERE run = ? AND number = ? AND usage IS NOT ?",
        (usage, run, number, usage),
    )


def find_usage(db: Connection, run: int | None, number: int) -> str | None:
    row = fetch_one(db, "SELECT usage FROM attempts WHERE run = ? AND number = ?", (run, number))
    return None if row is None else row["usage"]


def lose_open(db: Connection, run: int, now: float) -> None:
    """Nobody stands beside the program any more. Whether it lives, its client will show."""
    db.execute(
        "UPDATE attempts SET ended_at = ?, cause = 'lost' WHERE run = ? AND ended_at IS NULL",
        (now, run),
    )


def close(db: Connection, run: int, number: int, at: float) -> None:
    """It is over, as far as anybody knows; one whose process was seen to end keeps when."""
    db.execute(
        "UPDATE attempts SET ended_at = ?, cause = 'lost' "
        "WHERE run = ? AND number = ? AND exit_code IS NULL",
        (at, run, number),
    )


def reopen(db: Connection, run: int, number: int) -> None:
    """It is here after all; one whose process was seen to end is not."""
    db.execute(
        "UPDATE attempts SET ended_at = NULL, cause = NULL "
        "WHERE run = ? AND number = ? AND exit_code IS NULL",
        (run, number),
    )


def lose(db: Connection, run: int, number: int, now: float) -> None:
    db.execute(
        "UPDATE attempts SET ended_at = ?, cause = 'lost' "
        "WHERE run = ? AND number = ? AND ended_at IS NULL",
        (now, run, number),
    )


def of_run(db: Connection, run: int) -> list[Row]:
    """In their order, each with job and node of the agent that ran it, if one did."""
    return db.execute(
        "SELECT attempts.*, agents.job AS job, agents.node AS node FROM attempts "
        "LEFT JOIN agents ON agents.key = attempts.agent WHERE run = ? ORDER BY number",
        (run,),
    ).fetchall()


def last(db: Connection, run: int) -> Row | None:
    """The newest attempt: the one that speaks for the run."""
    return fetch_one(
        db, "SELECT * FROM attempts WHERE run = ? ORDER BY number DESC LIMIT 1", (run,)
    )


def _is_last(db: Connection, run: int, number: int) -> bool:
    newest = last(db, run)
    return newest is not None and newest["number"] == number


def get(db: Connection, run: int, number: int) -> Row:
    row: Row | None = db.execute(
        "SELECT * FROM attempts WHERE run = ? AND number = ?", (run, number)
    ).fetchone()
    if row is None:
        raise NoAttempt(number)
    return row


def read_console(db: Connection, run: int, after: int, most: int) -> tuple[bytes, int]:
    """Console bytes of all attempts in a row, from byte `after` on; and where to go on."""
    pieces: list[bytes] = []
    position = total = 0
    rows = db.execute(
        "SELECT number, console_bytes FROM attempts WHERE run = ? ORDER BY number", (run,)
    ).fetchall()
    for attempt in rows:
        size = attempt["console_bytes"]
        if position + size > after and total < most:
            start = max(0, after - position)
            piece = _read_attempt(db, run, attempt["number"], start, most - total)
            pieces.append(piece)
            total += len(piece)
            after = position + start + len(piece)
            if start + len(piece) < size:
                break
        position += size
    return b"".join(pieces), after


def _read_attempt(db: Connection, run: int, number: int, start: int, most: int) -> bytes:
    first = db.execute(
        "SELECT coalesce(max(start), 0) FROM console WHERE run = ? AND attempt = ? AND start <= ?",
        (run, number, start),
    ).fetchone()[0]
    rows = db.execute(
        "SELECT start, data FROM console WHERE run = ? AND attempt = ? AND start >= ? "
        "ORDER BY start",
        (run, number, first),
    )
    data = b""
    for row in rows:
        data += zlib.decompress(row["data"])
        if len(data) >= most + (start - first):
            break
    return data[start - first :][:most]


# Bytes, seconds, shares of one, rates.
NUMBERS = (
    "memory_peak",
    "cpu_seconds",
    "read_bytes",
    "written_bytes",
    "vram_peak",
    "vram_total",
    "gpu_use",
    "steps_per_second",
    "gpu_share",
)
_LARGEST = 2.0**60
_LONGEST_NAME = 500


def read_usage(report: object) -> str | None:
    """As it is stored; what is none of it is passed over, since newer agents may tell more."""
    if not isinstance(report, dict):
        return None
    usage: dict[str, Any] = {name: report[name] for name in NUMBERS if _is_amount(report.get(name))}
    gpu = report.get("gpu")
    if isinstance(gpu, str) and gpu.isprintable():
        usage["gpu"] = gpu[:_LONGEST_NAME]
    return json.dumps(usage) if usage else None


def usage_json(stored: str | None) -> dict[str, Any] | None:
    return None if stored is None else json.loads(stored)


def gpu_share(stored: str | None) -> float:
    """How many GPUs an attempt had, on average over its time: 0.5 where two share one."""
    return 0.0 if stored is None else float(json.loads(stored).get("gpu_share", 0.0))


def together(stored: Sequence[str | None]) -> dict[str, Any] | None:
    """Of attempts that run side by side: what they use in all, and how busy their GPUs are."""
    usages = [json.loads(usage) for usage in stored if usage is not None]
    if not usages:
        return None
    summed = ("memory_peak", "cpu_seconds", "vram_peak", "steps_per_second")
    total: dict[str, Any] = {
        name: sum(usage[name] for usage in usages if name in usage)
        for name in summed
        if any(name in usage for usage in usages)
    }
    used = [usage["gpu_use"] for usage in usages if "gpu_use" in usage]
    if used:
        total["gpu_use"] = sum(used) / len(used)
    return total


def _is_amount(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value) and 0 <= value <= _LARGEST  # type: ignore[arg-type, operator]
