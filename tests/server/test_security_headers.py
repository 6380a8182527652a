"""Every answer is closed: no browser runs what is in it, whatever it takes it for."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from runyard.server.http.security_headers import kind_of_file
from runyard.server.page import static_files
from tests.server.artifact_logger import Logger
from tests.server.asgi import Answer, Client
from tests.server.conftest import Upsert
from tests.server.persons import Person
from tests.server.test_people import CREATE_FILES

BROWSER = {"accept": "text/html"}


def is_closed(answer: Answer) -> bool:
    policy = answer.headers["content-security-policy"]
    return (
        answer.headers["x-content-type-options"] == "nosniff"
        and policy.startswith("sandbox; default-src 'none'")
        and answer.headers["cross-origin-resource-policy"] == "same-origin"
    )


def test_answers_of_every_kind(client: Client, upsert: Upsert, ada: Person) -> None:
    upsert(name="r1")
    created = ada.ask(CREATE_FILES, entity="ada", project="birds", run="r1")["data"]
    upload = created["createRunFiles"]["files"][0]["uploadUrl"]
    logger = Logger(client)
    artifact = logger.log({"a.html": b"<script>"})
    answers = [
        client.put(upload, b"<script>"),
        client.get("/files/ada/birds/r1/notes.txt"),
        client.get("/files/ada/birds/r1/missing.html"),
        client.get("/api/runs"),
        client.get("/api/runs", key=None),
        client.get("/api/<script>"),
        client.get("/api/export"),
        client.post("/graphql", {"query": "{ viewer { name } }"}),
        client.post("/graphql", b"{"),
        client.get("/sdk/x", key=None),
        client.request("PATCH", "/api/runs"),
        logger.download(artifact["currentManifest"]["file"]["directUrl"]),
        logger.download(artifact["files"]["edges"][0]["node"]["directUrl"]),
        # For who is no browser, and a text.
        client.get("/ada/birds/runs/r1", key=None),
    ]
    assert {answer.status for answer in answers} >= {200, 401, 404, 400, 405}
    assert [answer for answer in answers if not is_closed(answer)] == []


def test_files_of_runs_and_artifacts_are_attachments(
    client: Client, upsert: Upsert, ada: Person
) -> None:
    upsert(name="r1")
    created = ada.ask(
        CREATE_FILES.replace("notes.txt", "x.js"), entity="ada", project="birds", run="r1"
    )["data"]
    client.put(created["createRunFiles"]["files"][0]["uploadUrl"], b"alert(1)")
    artifact = Logger(client).log({"a.svg": b"<svg/>"})
    node = artifact["files"]["edges"][0]["node"]
    for answer in (
        client.get("/files/ada/birds/r1/x.js"),
        Logger(client).download(node["directUrl"]),
    ):
        assert answer.headers["content-disposition"].startswith("attachment")
        assert answer.headers["content-type"] == "application/octet-stream"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("cat.png", "image/png"),
        ("cat.svg", "image/svg+xml"),
        ("talk.wav", "audio/x-wav"),
        ("film.mp4", "video/mp4"),
        ("t.table.json", "application/json"),
        ("x.js", "application/octet-stream"),
        ("x.mjs", "application/octet-stream"),
        ("x.wasm", "application/octet-stream"),
        ("x.css", "application/octet-stream"),
        ("x.html", "application/octet-stream"),
        ("x.xhtml", "application/octet-stream"),
        ("x.pdf", "application/octet-stream"),
        ("noname", "application/octet-stream"),
        ("x.html.gz", "application/octet-stream"),
    ],
)
def test_only_media_go_out_as_what_they_are(name: str, kind: str) -> None:
    assert kind_of_file(name) == kind


def test_the_page_lets_in_no_more_than_it_needs(client: Client) -> None:
    page = client.request("GET", "/", key=None, headers=BROWSER)
    policy = dict(
        part.strip().split(" ", 1) for part in page.headers["content-security-policy"].split(";")
    )
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "connect-src": "'self'",
        "img-src": "'self' data:",
        "media-src": "'self'",
        "style-src": "'self' 'unsafe-inline'",
        "frame-src": "'self'",
        "base-uri": "'self'",
        "form-action": "'none'",
        "frame-ancestors": "'self'",
    }
    assert page.headers["x-content-type-options"] == "nosniff"


def test_a_viewer_has_no_origin_and_loads_nothing(
    client: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "assets"
    folder.mkdir()
    (folder / "viewer-vega-1.html.gz").write_bytes(gzip.compress(b"<p>viewer"))
    monkeypatch.setattr(static_files, "BUILT", static_files.BuiltPage(tmp_path))
    for encoding in ("gzip", "identity"):
        viewer = client.request(
            "GET", "/assets/viewer-vega-1.html", key=None, headers={"accept-encoding": encoding}
        )
        body = gzip.decompress(viewer.body) if encoding == "gzip" else viewer.body
        assert body == b"<p>viewer"
        policy = viewer.headers["content-security-policy"]
        assert policy.startswith("sandbox allow-scripts; default-src 'none'; script-src")
        assert "allow-same-origin" not in policy
        assert "connect-src" not in policy
        assert "'self'" not in policy.replace("frame-ancestors 'self'", "")
        assert "unsafe-eval" not in policy
    assert client.request("GET", "/assets/viewer-vega-1.html.gz", key=None).status == 404
