"""A run's client on the wire, for benchmarks that must not wait for a real one."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from typing import Any

from runyard.client.http import Connection
from runyard.home import Home, read_discovery

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
