"""A run's client on the wire, for benchmarks that must not wait for a real one."""

from __future__ import annotations

import functools
import json
import random
import sqlite3
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from runyard.client.http import Connection
from runyard.home import Home, read_discovery
from runyard.server.history.history import HISTORY, put_rows
from runyard.server.history.joining import join_batches
from runyard.server.tracker import Tracker

SINCE = 1.7e9
_ROWS_AT_ONCE = 10_000
_COPIED = {
    "segments": "stream, start, stop",
    "series": "stream, key, level, start, kind, count, lines, data",
}
PROJECT = "wire"
UPSERT = """mutation($name: String, $id: String, $config: JSONString, $project: String) {
  upsertBucket(input: {name: $name, id: $id, config: $config, modelName: $project, host: "node"}) {
    bucket { id historyLineCount project { entity { name } } } } }"""
REWIND = """mutation($run: String!, $project: String, $step: Float!) {
  rewindRun(input: {runName: $run, projectName: $project, metricName: "_step", metricValue: $step})
  { rewoundRun { id } } }"""


def connect(home: Home, *, timeout: float = 600.0) -> Connection:
    discovery = read_discovery(home)
    assert discovery is not None
    return Connection(discovery.url, discovery.key, timeout=timeout)


def row(step: int, keys: int, since: float = 1.7e9) -> str:
    """What a program logs; the noise of real numbers does not compress."""
    values = {f"m{key}": random.random() for key in range(keys)}
    return json.dumps({"_step": step, "_timestamp": since + step / 8, **values})


class WireRun:
    """One run, and the process that writes to it."""

    def __init__(self, connection: Connection, name: str, started_at: float = 1.7e9) -> None:
        self._connection = connection
        self.name = name
        self.started_at = started_at
        self.entity = ""

    def start(self, internals: Mapping[str, Any] | None = None, **more: Any) -> Any:
        told = {"t": {"3": []}, "start_time": self.started_at, **(internals or {})}
        config = json.dumps({"_wandb": {"value": told}})
        names = {"name": self.name, "project": PROJECT, "config": config, **more}
        answer = self._connection.post("/graphql", {"query": UPSERT, "variables": names})
        bucket = answer["data"]["upsertBucket"]["bucket"]
        self.entity = bucket["project"]["entity"]["name"]
        return bucket

    def log(self, offset: int, rows: Iterable[str], **more: Any) -> None:
        files = {"wandb-history.jsonl": {"offset": offset, "content": list(rows)}}
        path = f"/files/{self.entity}/{PROJECT}/{self.name}/file_stream"
        self._connection.post(path, {"files": files, **more})

    def rewind(self, step: int) -> None:
        names = {"run": self.name, "project": PROJECT, "step": step}
        answer = self._connection.post("/graphql", {"query": REWIND, "variables": names})
        assert "errors" not in answer, answer


def fill(home: Home, runs: list[int], rows: int, keys: int) -> None:
    """Give runs rows while no server runs: the first as a client's come, the others a copy."""
    tracker = Tracker(home)
    discovery = read_discovery(home)
    assert discovery is not None
    tracker.open(discovery.key)
    first, *others = runs
    for start in range(0, rows, _ROWS_AT_ONCE):
        lines = [row(step, keys, SINCE) for step in range(start, start + _ROWS_AT_ONCE)]

        def add(
            connection: sqlite3.Connection, start: int = start, lines: list[str] = lines
        ) -> None:
            put_rows(connection, first, HISTORY, start, lines)
            while join_batches(connection, first, HISTORY):
                pass
            connection.execute(
                "UPDATE runs SET summary = ?, seen_client = 1 WHERE key = ?", (lines[-1], first)
            )

        tracker._database.write(add).result()

    def copy(connection: sqlite3.Connection, run: int) -> None:
        for table, columns in _COPIED.items():
            connection.execute(
                f"INSERT INTO {table} (run, {columns}) "
                f"SELECT ?, {columns} FROM {table} WHERE run = ?",
                (run, first),
            )

    for run in others:
        tracker._database.write(functools.partial(copy, run=run)).result()
    tracker.close()
    size = home.database.stat().st_size / 1e6
    print(f"filled {len(runs)} runs of {rows} rows: {size:.0f} MB", file=sys.stderr)
