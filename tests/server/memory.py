"""Stores in memory, for tests of what is asked of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

from runyard.server.runs import runs
from runyard.server.store.migrations import migrate

Question = Callable[[sqlite3.Connection], Any]


def empty_store() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.row_factory = sqlite3.Row
    migrate(connection)
    return connection


def store_with_a_run() -> sqlite3.Connection:
    """One run, announced by `runyard run`; its key is 1."""
    connection = empty_store()
    connection.execute("INSERT INTO users (key, name, created_at) VALUES (1, 'ada', 0)")
    new = {"id": "run1", "project": "birds", "command": ["python"]}
    runs.create_launched(connection, new, entity="ada", user=1, now=1.0)
    return connection


def full_scans(connection: sqlite3.Connection, question: Question) -> list[str]:
    """The steps of a question's answer that look at every row of a table."""
    asked: list[str] = []
    connection.set_trace_callback(asked.append)
    question(connection)
    connection.set_trace_callback(None)
    selects = [statement for statement in asked if statement.startswith("SELECT")]
    assert selects
    return [
        f"{step['detail']}: {statement}"
        for statement in selects
        for step in connection.execute(f"EXPLAIN QUERY PLAN {statement}")
        if step["detail"].startswith("SCAN")
        and "INDEX" not in step["detail"]
        and "json_each" not in step["detail"]
    ]
