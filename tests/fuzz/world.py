"""A server with a little of everything in it, for inputs to meet: keys are 1, names the tests'."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

from runyard.home import Home, prepare
from runyard.server.app import create_app
from runyard.server.tracker import Tracker
from tests.server.artifact_logger import Logger, manifest_of, md5
from tests.server.asgi import KEY, Client
from tests.server.persons import Person, add_person
from tests.server.sweeping import GRID, Agent, create, log

_UPLOAD = """mutation M { createRunFiles(input: {projectName: "birds", runName: "run1",
  files: ["notes.txt"]}) { files { uploadUrl } } }"""


class World:
    """`names` are what inputs cannot know: ids that are drawn, and signed addresses."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="runyard-fuzz-"))
        home = Home(self.folder / "state")
        prepare(home)
        self.home = home
        with mock.patch.dict("os.environ", {"LOGNAME": "ada"}):
            self.tracker = Tracker(home)
            self.tracker.open(KEY)
        app = create_app(self.tracker, stop=lambda: None)
        self.client = Client(app)
        self.names: dict[str, str] = {}
        try:
            self._fill()
        except BaseException:
            self.close()
            raise

    def _fill(self) -> None:
        client, ada = self.client, Person(self.client, "ada", KEY)
        config = '{"lr": {"value": 0.1}, "model": {"value": {"depth": 3}}}'
        for run in ("run1", "run2"):
            ada.log(run, config=config, tags=["a"], groupName="g")
            lines = [
                f'{{"_step": {n}, "_timestamp": {n}, "loss": {1 / (n + 1)}}}' for n in range(9)
            ]
            files = {
                "wandb-history.jsonl": {"offset": 0, "content": lines},
                "wandb-summary.json": {"offset": 0, "content": ['{"loss": 0.1}']},
                "output.log": {"offset": 0, "content": ["hello\n", "there\n"]},
            }
            _good(ada.post(f"/files/ada/birds/{run}/file_stream", {"files": files}))
        bob = add_person(ada, "bob")
        _good(ada.post("/api/teams", {"name": "birders"}))
        bob.log("bobs")
        sweep = create(client, {**GRID, "early_terminate": {"type": "hyperband", "min_iter": 1}})
        agent = Agent(client, sweep["key"], token="agent")
        log(client, agent.claim("first"), 1.0, 0.5)
        agent.claim("second")
        job = {"cluster": "c", "job_id": "40", "kind": "agents", "name": "j", "array": "1-4",
               "tasks": 4, "folder": "/nowhere", "log_pattern": "/nowhere/%A_%a.log", "asked": {},
               "sweep": sweep["key"], "submitted_at": 1.0}  # fmt: skip
        _good(ada.post("/api/jobs", job))
        report = ada.post("/api/projects/ada/birds/reports", {"title": "t", "view": {}})
        self.names["$report"] = _good(report)["id"]
        self.names["$sweep"] = sweep["id"]
        logger = Logger(client)
        content = {"a.txt": b"hello", "b/c.bin": b"\x00\x01"}
        logger.log(content)
        waiting = logger.create("more", "d9")
        self.names["$pending"] = waiting["id"]
        more = {"d.txt": b"more"}
        (node,) = logger.announce(waiting["id"], more)
        self.names["$blob"] = _path(node["uploadUrl"])
        text = _as_text(manifest_of(more))
        announced = {"artifactID": waiting["id"], "name": "wandb_manifest.json",
                     "digest": md5(text), "type": "FULL"}  # fmt: skip
        self.names["$manifest"] = _path(self.manifest_url(announced))
        files = ada.ask(_UPLOAD)["data"]["createRunFiles"]["files"]
        self.names["$run_file"] = _path(files[0]["uploadUrl"])

    def manifest_url(self, announced: Mapping[str, Any]) -> str:
        from tests.server.artifact_logger import MANIFEST

        made = Logger(self.client).ask(MANIFEST, input=announced, includeUpload=True)
        url: str = made["createArtifactManifest"]["artifactManifest"]["file"]["uploadUrl"]
        return url

    def fill_in(self, text: str) -> str:
        for name, value in self.names.items():
            text = text.replace(name, value)
        return text

    def check(self) -> None:
        """That others are served as before, and that the database is whole."""
        answer = self.client.get("/api/me")
        assert answer.status in (200, 401), answer.text  # The key may have been revoked.

    def close(self) -> None:
        self.client._loop.run_until_complete(self.tracker.sweeps.close())
        self.client.close()
        self.tracker.close()
        try:
            with sqlite3.connect(self.home.database) as connection:
                (state,) = connection.execute("PRAGMA integrity_check").fetchone()
                broken = connection.execute("PRAGMA foreign_key_check").fetchall()
            assert (state, broken[:5]) == ("ok", [])
        finally:
            connection.close()
            shutil.rmtree(self.folder, ignore_errors=True)


def _good(answer: Any) -> Any:
    assert answer.status == 200, answer.text
    return answer.json()


def _path(url: str) -> str:
    return "/" + url.split("/", 3)[3]


def _as_text(manifest: Mapping[str, Any]) -> bytes:
    import json

    return json.dumps(manifest).encode()
