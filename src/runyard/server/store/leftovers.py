"""What a killed `runyard run` left behind: console and end that it could not deliver any more."""

from __future__ import annotations

import json
import logging
import os
import socket
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runyard.server.store import attempts

log = logging.getLogger(__name__)


def take_in(connection: sqlite3.Connection, spool: Path, now: float) -> list[Path]:
    """Store what dead processes left in the spool. Returns the files that are not needed now."""
    done: list[Path] = []
    for path in sorted(spool.glob("*.json")):
        try:
            record = json.loads(path.read_text())
            if _is_dead(record):
                _store(connection, record, path.with_suffix(".log"), now)
                done += [path, path.with_suffix(".log")]
        except (OSError, ValueError, KeyError, LookupError) as error:
            log.warning("%s could not be taken in: %s", path, error)
    return done


def remove(paths: list[Path]) -> None:
    """Only after the commit: until then the files are the only copy."""
    for path in paths:
        path.unlink(missing_ok=True)


def _is_dead(record: Mapping[str, Any]) -> bool:
    if record["host"] != socket.gethostname():
        return False  # Its own machine can tell; from here it cannot be seen.
    try:
        os.kill(record["pid"], 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return True  # The number is somebody else's now.
    return False


def _store(
    connection: sqlite3.Connection, record: Mapping[str, Any], copy: Path, now: float
) -> None:
    run, number = record["run"], record["number"]
    row = connection.execute(
        "SELECT console_bytes FROM attempts WHERE run = ? AND number = ?", (run, number)
    ).fetchone()
    if row is None:
        return  # The run was deleted.
    if copy.exists():
        with copy.open("rb") as file:
            file.seek(row["console_bytes"])
            attempts.append_console(connection, run, number, row["console_bytes"], file.read(), now)
    if "exit_code" in record:
        attempts.end(
            connection, run, number, exit_code=record["exit_code"], ended_at=record["ended_at"]
        )
    else:
        attempts.lose(connection, run, number, now)
