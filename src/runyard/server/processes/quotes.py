"""The end of what a run printed, for the person who wants to know why it failed."""

from __future__ import annotations

import sqlite3
from collections import deque

from runyard.server.processes import attempts, clients

_LINES, _BYTES = 8, 4096


def last_words(connection: sqlite3.Connection, run: int | None) -> str:
    """The last lines that are not empty; the attempt's console, or what the client sent of it."""
    if run is None:
        return ""
    newest = attempts.last(connection, run)
    if newest is not None and newest["console_bytes"]:
        total = sum(row["console_bytes"] for row in attempts.of_run(connection, run))
        data, _ = attempts.read_console(connection, run, max(0, total - _BYTES), _BYTES)
        lines = data.decode(errors="replace").splitlines()
    else:
        lines = list(deque(clients.console_lines(connection, run), _LINES * 4))
    return "\n".join([line.rstrip() for line in lines if line.strip()][-_LINES:])
