"""What a client process says on the wire, in as few words as a test needs."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from runyard.server.history import history
from runyard.server.history.history import read_objects
from runyard.server.tracker import Tracker
from tests.server.asgi import Answer, Client

UPSERT = """
mutation UpsertBucket($id: String, $name: String, $project: String, $config: JSONString,
    $host: String, $program: String, $tags: [String!]) {
  upsertBucket(input: {id: $id, name: $name, modelName: $project, config: $config, host: $host,
      jobProgram: $program, tags: $tags}) {
    bucket { id name historyLineCount state config tags }
  }
}
"""
REWIND = """
mutation RewindRun($runName: String!, $project: String, $metricName: String!, $metricValue: Float!)
{ rewindRun(input: {runName: $runName, entityName: null, projectName: $project,
      metricName: $metricName, metricValue: $metricValue}) {
    rewoundRun { id name displayName config historyLineCount project { name entity { name } } } } }
"""
SYNC, NEWER_SYNC, FINISH = 42, 76, 2
_starts = itertools.count(1_000_000_000, 1_000)


class Process:
    """One client process of a run. Its rows are (step, value); times follow from its start."""

    def __init__(
        self,
        client: Client,
        run: str = "run1",
        *,
        features: Sequence[int] = (),
        program: str = "train.py",
        writer: str = "",
        started_at: int | None = None,
    ) -> None:
        self.run = run
        self.started_at = next(_starts) if started_at is None else started_at
        self.features = list(features)
        self._client = client
        self._program = program
        self._writer = writer

    def synced(self, *features: int) -> Process:
        """`wandb sync` of what this process left on disk."""
        return Process(
            self._client, self.run, features=features or (SYNC,), started_at=self.started_at
        )

    def start(
        self,
        config: Mapping[str, Any] | None = None,
        *,
        host: str | None = "node1",
        internals: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """The first upsert (or a later one, without a host); answers the bucket."""
        told = {"t": {"3": self.features}, "start_time": self.started_at, **(internals or {})}
        entries = {key: {"value": value} for key, value in (config or {}).items()}
        text = json.dumps({**entries, "_wandb": {"value": told}})
        names = {"name": self.run, "project": "birds", "host": host, "program": self._program}
        body = {"query": UPSERT, "variables": {**names, "config": text, **more}}
        answer = self._send("/graphql", body).json()
        assert "errors" not in answer, answer
        found: dict[str, Any] = answer["data"]["upsertBucket"]["bucket"]
        return found

    def log(self, offset: int, steps: Iterable[int], **more: Any) -> None:
        """History from `offset` on. The value of a row is its step and the process's start."""
        rows = [self.row(step) for step in steps]
        self.post({"wandb-history.jsonl": (offset, [json.dumps(row) for row in rows])}, **more)

    def row(self, step: int) -> dict[str, Any]:
        return {"_step": step, "_timestamp": self.started_at + step * 0.25, "v": self.started_at}

    def post(self, files: Mapping[str, tuple[int, list[str]]] | None = None, **more: Any) -> None:
        parts = {
            name: {"offset": offset, "content": lines}
            for name, (offset, lines) in (files or {}).items()
        }
        answer = self._send(f"/files/ada/birds/{self.run}/file_stream", {"files": parts, **more})
        assert answer.status == 200, answer.text

    def finish(self, exit_code: int = 0) -> None:
        self.post(complete=True, exitcode=exit_code)

    def _send(self, path: str, body: object) -> Answer:
        header = "x-wandb-client-id" if path == "/graphql" else "x-wandb-async-client-id"
        shared = {"x-wandb-use-async-filestream": "true", header: self._writer}
        return self._client.request(
            "POST", path, [json.dumps(body).encode()], headers=shared if self._writer else {}
        )


def history_of(tracker: Tracker, run: int = 1) -> list[tuple[int, int]]:
    """(step, start of the process that logged it) of each row."""
    rows = tracker._database.read(
        lambda connection: list(read_objects(connection, run, history.HISTORY))
    ).result()
    return [(row["_step"], row["v"]) for _, row in rows if isinstance(row, dict)]


def steps_of(tracker: Tracker, run: int = 1) -> list[int]:
    return [step for step, _ in history_of(tracker, run)]


def run_of(client: Client, name: str = "run1") -> Any:
    return client.get("/api/run", name=name).json()
