"""What a killed `runyard run` left behind: console and end that it could not deliver any more."""

from __future__ import annotations

import json
import logging
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from runyard.server.processes import attempts
from runyard.server.runs import runs
from runyard.server.store.database import Database
from runyard.server.store.names import check_project, check_run_id
from runyard.server.sweeps.ledger import endings

log = logging.getLogger(__name__)

# A console can be gigabytes: piece by piece, so that neither memory nor the writer is held up.
_PIECE = 4 << 20


def take_in(database: Database, spool: Path, now: float) -> int:
    """Store what dead processes left in the spool, then remove it. Says how many were taken in."""
    taken = 0
    for path in sorted(spool.glob("*.json")):
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            if not _is_over(record):
                continue
            copy = path.with_suffix(".log")
            _store(database, record, copy, now)
            # Only now: until the commit the files were the only copy.
            path.unlink(missing_ok=True)
            copy.unlink(missing_ok=True)
            taken += 1
        except FileNotFoundError:
            continue  # Its owner delivered it after all.
        except Exception as error:  # One bad record must not keep the others, or us, from work.
            log.warning("%s could not be taken in: %s: %s", path, type(error).__name__, error)
    return taken


def _is_over(record: Mapping[str, Any]) -> bool:
    """Whether its process is gone. One that never reached us is over when it says so."""
    return ("new" in record and "exit_code" in record) or _is_dead(record)


def _is_dead(record: Mapping[str, Any]) -> bool:
    if record["host"] != socket.gethostname():
        return False  # Its own machine can tell; from here it cannot be seen.
    # An agent's program, and the keeper that ends it, may outlive the agent by some seconds.
    return not any(_lives(record.get(who)) for who in ("pid", "keeper", "group"))


def _lives(pid: int | None) -> bool:
    try:
        os.kill(pid or 0, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return False  # The number is somebody else's now.
    return pid is not None


def _store(database: Database, record: Mapping[str, Any], copy: Path, now: float) -> None:
    if "new" in record:
        known = database.write(lambda db: _announce(db, record)).result()
        record = {**record, **known}
    run, number = int(record["run"]), int(record["number"])
    try:
        _store_console(database, run, number, copy)
        database.write(lambda db: _close(db, record, now)).result()
    except attempts.NoAttempt:
        return  # The run was deleted.


def _announce(db: Connection, record: Mapping[str, Any]) -> dict[str, int]:
    """A run of whose start we could not be told: it is the folder's owner's."""
    new, begun = record["new"], float(record["begun_at"])
    owner = db.execute("SELECT key, name FROM users WHERE admin").fetchone()
    entity = new.get("entity") or owner["name"]
    check_run_id(new["id"])
    check_project(new["project"])
    check_project(entity)
    # The client's own record may have come in before this one, in a place of its choice.
    run = db.execute(
        "SELECT runs.key FROM runs JOIN projects ON projects.key = runs.project "
        f"WHERE {runs.NOT_TRASH} AND runs.id = ? AND (projects.entity = ? OR runs.user = ?) "
        "ORDER BY runs.created_at DESC LIMIT 1",
        (new["id"], entity, owner["key"]),
    ).fetchone()
    if run is None:
        run = runs.create_launched(db, new, entity=entity, user=owner["key"], now=begun)
    key: int = run["key"]
    number = attempts.begin(
        db, key, token=record["token"], host=record["host"], pid=int(record["pid"]), now=begun
    )
    return {"run": key, "number": number}


def _store_console(database: Database, run: int, number: int, copy: Path) -> None:
    # The first, empty piece tells what is stored already.
    stored = _append(database, run, number, 0, b"")
    if not copy.exists():
        return
    with copy.open("rb") as file:
        file.seek(stored)
        while piece := file.read(_PIECE):
            stored = _append(database, run, number, stored, piece)


def _append(database: Database, run: int, number: int, start: int, piece: bytes) -> int:
    def change(db: Connection) -> int:
        return attempts.append_console(db, run, number, start, piece, heard_at=None)

    return database.write(change).result()


def _close(db: Connection, record: Mapping[str, Any], now: float) -> None:
    run, number = record["run"], record["number"]
    if "exit_code" in record:
        endings.end_attempt(
            db,
            run,
            number,
            exit_code=int(record["exit_code"]),
            ended_at=float(record["ended_at"]),
            cause=record.get("cause"),
            now=now,
        )
    else:
        attempts.lose(db, run, number, now)
