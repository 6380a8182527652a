"""Targets: what the server is sent, through the real application, with a key that it knows.

No answer is a 5xx, nothing is logged as an error, what is JSON can be read strictly, and afterwards
others are served and the database is whole.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import itertools
import json
import logging
import urllib.parse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.fuzz.engine import kind_of
from tests.fuzz.limits import Finding
from tests.fuzz.mutations import as_bytes, expand
from tests.fuzz.world import World
from tests.server.artifact_logger import COMMIT, CREATE, manifest_of, md5
from tests.server.asgi import KEY, Answer

_REQUESTS = json.loads((Path(__file__).parent / "requests.json").read_text())
# So many inputs meet one server before it is made anew.
_IN_ONE_WORLD = 60
# These wait for news, on purpose: whoever asks goes away.
_WAITING = ("/api/live", "/claim")
# A client keeps what it has for a run that is not known yet, and tries again; and where the page
# could not be built, its address says so.
_MEANT = (b" is not known here", b"The page is not built")
_PATIENT_SECONDS, _IMPATIENT_SECONDS = 120.0, 0.2


class _Errors(logging.Handler):
    """What the server logs as its own trouble."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


class ServerTarget:
    """A case is a list of requests, or one."""

    name = ""
    words: Sequence[str] = ()

    def __init__(self) -> None:
        self._errors = _Errors()
        logging.getLogger("runyard").addHandler(self._errors)
        self._world = World()
        self._met = 0

    def seeds(self) -> Sequence[Any]:
        return ()

    def place(self, case: Any) -> str:
        first = case[0] if isinstance(case, list) and case else case
        return str(first.get("path"))[:60] if isinstance(first, dict) else "nothing"

    def run(self, case: Any) -> None:
        if self._met >= _IN_ONE_WORLD:
            self.renew()
        self._met += 1
        self._errors.records.clear()
        for request in case if isinstance(case, list) else [case]:
            if isinstance(request, dict):
                self._send(request)
        self._world.check()

    def renew(self) -> None:
        self._met = 0
        world, self._world = self._world, World()
        world.close()

    def close(self) -> None:
        logging.getLogger("runyard").removeHandler(self._errors)
        self._world.close()

    def _send(self, request: Mapping[str, Any]) -> Answer | None:
        path = str(request.get("path") or "/")
        if path.startswith("/api/server/backup"):
            return None  # It writes wherever it is told.
        query = request.get("query")
        if isinstance(query, dict):
            path += "?" + urllib.parse.urlencode(
                {
                    as_bytes(expand(str(key))): as_bytes(expand(str(item)))
                    for key, item in query.items()
                }
            )
        path = as_bytes(self._world.fill_in(path)).decode("latin-1").replace("\n", "%0A")
        body, headers = self._body(request)
        half = len(body) // 2
        pieces = [body[:half], body[half:]] if request.get("pieces") else [body]
        key = request.get("key", KEY)
        exchange = self._world.client.exchange(
            str(request.get("method") or "GET")[:20],
            path if path.startswith("/") else f"/{path}",
            pieces,
            key=key if isinstance(key, str) and key.isascii() else None,
            headers=headers,
            cut=bool(request.get("cut")),
        )
        return self._judge(request, exchange, path)

    def _body(self, request: Mapping[str, Any]) -> tuple[bytes, dict[str, str]]:
        content = request.get("body")
        text = content if isinstance(content, str) else json.dumps(content) if content else ""
        body = as_bytes(expand(self._world.fill_in(text)))
        given = request.get("headers")
        headers = {
            as_bytes(str(name)).decode("latin-1").lower(): as_bytes(str(value)).decode("latin-1")
            for name, value in (given if isinstance(given, dict) else {}).items()
        }
        if request.get("packed"):
            body = gzip.compress(body)
            headers["content-encoding"] = "gzip"
            if request["packed"] == "half":
                body = body[: len(body) // 2]
        return body, headers

    def _judge(self, request: Mapping[str, Any], exchange: Any, path: str) -> Answer | None:
        waits = any(word in path for word in _WAITING)
        try:
            (answer,) = self._world.client.together(
                asyncio.wait_for(exchange, _IMPATIENT_SECONDS if waits else _PATIENT_SECONDS)
            )
        except TimeoutError:
            if waits:
                return None
            raise Finding(f"no answer from {path[:60]}") from None
        for record in self._errors.records:
            message = record.getMessage()
            if record.exc_info and record.exc_info[1]:
                error = record.exc_info[1]
                raise Finding(kind_of(error), f"{message}\n{_trace(error)}")
            raise Finding(f"logged as an error: {record.msg}", message)
        is_meant = answer.status == 503 and any(words in answer.body for words in _MEANT)
        if answer.status >= 500 and not is_meant:
            raise Finding(f"{answer.status} from {path[:60]}", answer.text[:500])
        assert isinstance(answer, Answer)
        if answer.body and answer.headers.get("content-type") == "application/json":
            answer.json()
        return answer


def _trace(error: BaseException) -> str:
    import traceback

    return "".join(traceback.format_exception(error))[-2_500:]


def _recorded(*paths: str) -> list[Any]:
    return [request for request in _REQUESTS if request["path"].startswith(paths)]


_IDS = ("ada", "bob", "birds", "run1", "run2", "birders", "$sweep", "$report", "$pending", "1",
        "data",
        "data:v0", "data:latest", "QXJ0aWZhY3Q6MQ==")  # fmt: skip


class Graphql(ServerTarget):
    """Documents and variables."""

    name = "graphql"
    words = (
        *_IDS, "query", "mutation", "subscription", "fragment F on Run { ...F }", "...F",
        "@skip(if: 1)",
        "@include(if: $x)", "(first: 99999999)", "(after: \"x\")",
        "(filters: \"{\\\"$or\\\": []}\")",
        "$regex", "$in", "$gt", "{\"config.lr\": {\"$gt\": 0}}", "{ __schema { types { name } } }",
        "-created_at", "summary_metrics.loss", "alias:", "edges { node { id } }", "__typename",
        "...",
        "\"\"\"", "null", "[$x]", "{a: $x}", "run1:v0", "history(samples: 5)",
    )  # fmt: skip

    def seeds(self) -> Sequence[Any]:
        return _recorded("/graphql")

    def place(self, case: Any) -> str:
        body = case.get("body") if isinstance(case, dict) else None
        text = body.get("query") if isinstance(body, dict) else body
        return f"graphql {str(text)[:60]}"


class FileStream(ServerTarget):
    """Posts with all kinds of offsets and lines; several in a row."""

    name = "file_stream"
    words = (
        *_IDS, "wandb-history.jsonl", "wandb-events.jsonl", "wandb-summary.json", "output.log",
        "{\"_step\": 3, \"loss\": NaN}", "{\"_step\": -1}", "{\"_step\": 1e400}",
        "{\"a\": {\"b\": []}}",
        "ERROR 2026-01-01T00:00:00 x", "complete", "exitcode", "offset", "content", "preempting",
        "{\"_step\": 99999999999999999999}", "{\"_type\": \"histogram\"}", "\x1b[2K\r", "uploaded",
    )  # fmt: skip

    def seeds(self) -> Sequence[Any]:
        posts = _recorded("/files/ada/birds/run1/file_stream")
        return [*posts, *([first, second] for first, second in itertools.pairwise(posts))]


class Routes(ServerTarget):
    """Every other request."""

    name = "routes"
    words = (
        *_IDS,
        "running",
        "finished",
        "0,1,2",
        "-1",
        "state",
        "config.lr",
        "loss",
        "key",
        "wait",
    )

    def seeds(self) -> Sequence[Any]:
        skipped = ("/graphql", "/files/ada/birds/run1/file_stream")
        return [request for request in _REQUESTS if not request["path"].startswith(skipped)]


class Uploads(ServerTarget):
    """Contents that are not what was announced; addresses that were not handed out."""

    name = "uploads"
    words = (
        "$run_file",
        "$blob",
        "$manifest",
        "$pending",
        "content-md5",
        "content-length",
        "1e9",
        "-1",
    )

    def seeds(self) -> Sequence[Any]:
        return [
            {"method": "PUT", "path": path, "body": body, "key": None, "headers": {}, **more}
            for path, body in (("$run_file", "hello"), ("$blob", "more"),
                               ("$manifest", json.dumps(manifest_of({"d.txt": b"more"}))))
            for more in ({}, {"cut": True}, {"pieces": True}, {"packed": True}, {"packed": "half"},
                         {"headers": {"content-length": "-5", "content-md5": "x",
                                      "content-range": "bytes 5-1/*"}})
        ]  # fmt: skip


class Manifests(ServerTarget):
    """A case is a manifest: announced with its own MD5, uploaded, committed and read again."""

    name = "manifests"
    words = ("contents", "digest", "size", "ref", "local_path", "storagePolicy", "version",
             "../a", "a/b",
             "wandb-artifact://6162/a.txt", "s3://bucket/x", "extra",
             "birthArtifactID")  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self._number = 0

    def place(self, case: Any) -> str:
        return "a manifest"

    def seeds(self) -> Sequence[Any]:
        whole = manifest_of({"a.txt": b"hello", "b/c.bin": b"\x00\x01"}, far="s3://bucket/x")
        linked = manifest_of({}, near="wandb-artifact://QXJ0aWZhY3Q6MQ==/a.txt")
        return [whole, linked, manifest_of({}), manifest_of({}, web="https://example.org/?a=b#c")]

    def run(self, case: Any) -> None:
        if self._met >= _IN_ONE_WORLD:
            self.renew()
        self._met += 1
        self._number += 1
        self._errors.records.clear()
        text = case if isinstance(case, str) else json.dumps(case)
        announced = {
            "projectName": "birds", "artifactTypeName": "dataset",
            "artifactCollectionName": f"m{self._number}", "digest": f"x{self._number}",
        }  # fmt: skip
        made = self._ask(CREATE, {"input": announced})["createArtifact"]["artifact"]["id"]
        url = self._world.manifest_url(
            {"artifactID": made, "name": "wandb_manifest.json", "type": "FULL",
             "digest": md5(as_bytes(expand(text)))}
        )  # fmt: skip
        path = "/" + url.split("/", 3)[3]
        self._send({"method": "PUT", "path": path, "body": text, "key": None})
        self._send(_question(COMMIT, {"id": made}))
        for field in ("manifest", "files(first: 3) { edges { node { name url sizeBytes } } }"):
            asked = "currentManifest { file { directUrl } }" if field == "manifest" else field
            document = f"query Q($id: ID!) {{ artifact(id: $id) {{ {asked} }} }}"
            self._send(_question(document, {"id": made}))
        number = base64.b64decode(made).decode().rpartition(":")[2]
        self._send({"path": f"/api/artifacts/{number}/manifest"})
        self._world.check()

    def _ask(self, document: str, variables: Mapping[str, Any]) -> Any:
        answer = self._send(_question(document, variables))
        assert answer is not None
        return answer.json()["data"]


def _question(document: str, variables: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "method": "POST",
        "path": "/graphql",
        "body": {"query": document, "variables": variables},
    }


SERVER = (Graphql, FileStream, Routes, Uploads, Manifests)
