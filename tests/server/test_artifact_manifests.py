"""Manifests: checked when they come, and put together where several make one version."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runyard.server.artifacts.manifests import BadManifest, parse
from tests.server.artifact_logger import (
    MANIFEST,
    UPDATE_MANIFEST,
    Logger,
    digest_of,
    manifest_of,
    md5,
)
from tests.server.asgi import Client


@pytest.fixture
def logger(client: Client) -> Logger:
    return Logger(client)


def _send_later(
    logger: Logger, artifact: str, kind: str, files: dict[str, bytes], **more: Any
) -> None:
    """As clients do that add to a version: the manifest is announced first, its digest later."""
    logger.upload(artifact, files)
    given = {"artifactID": artifact, "name": "m", "digest": "", "type": kind, **more}
    made = logger.ask(MANIFEST, input=given, includeUpload=False)["createArtifactManifest"]
    text = json.dumps(manifest_of(files)).encode()
    given = {"artifactManifestID": made["artifactManifest"]["id"], "digest": md5(text)}
    made = logger.ask(UPDATE_MANIFEST, input=given)["updateArtifactManifest"]
    answer = logger.client.put(made["artifactManifest"]["file"]["uploadUrl"], text)
    assert answer.status == 200, answer.text


def test_references_are_kept_and_not_asked_for(logger: Logger) -> None:
    references = {"bucket": "s3://birds/all.csv", "page": "https://birds.example/x",
                  "disk": "file:///data/birds"}  # fmt: skip
    version = logger.create()["id"]
    logger.send_manifest(version, manifest_of({}, **references))
    logger.commit(version)
    contents = logger.manifest("data")["contents"]
    assert {name: entry["ref"] for name, entry in contents.items()} == references
    found = logger.find("data")
    assert found is not None
    nodes = [edge["node"] for edge in found["files"]["edges"]]
    assert [node["name"] for node in nodes] == sorted(references)
    # No address of ours, and none of theirs that a client would send its key to.
    assert {(node["url"], node["directUrl"]) for node in nodes} == {(None, "")}


def test_an_incremental_version_adds_to_the_last(logger: Logger) -> None:
    base = logger.log({"a": b"1", "b": b"1"})
    version = logger.create(digest="part")["id"]
    _send_later(logger, version, "INCREMENTAL", {"b": b"2", "c": b"2"}, baseArtifactID=base["id"])
    whole = {"a": b"1", "b": b"2", "c": b"2"}
    assert logger.commit(version) == digest_of(manifest_of(whole))
    assert logger.contents("data:v1") == whole
    assert logger.contents("data:v0") == {"a": b"1", "b": b"1"}
    # The same content, logged as a whole, is the same version.
    assert logger.log(whole)["versionIndex"] == 1


def test_an_incremental_version_takes_nothing_from_another_entity(logger: Logger) -> None:
    theirs = logger.create(entityName="bob", digest="x")["id"]
    logger.send_manifest(theirs, manifest_of({}, secret="s3://bob/secret"))
    logger.commit(theirs)
    version = logger.create(digest="part")["id"]
    _send_later(logger, version, "INCREMENTAL", {"mine": b"1"}, baseArtifactID=theirs)
    logger.commit(version)
    assert list(logger.manifest("data")["contents"]) == ["mine"]


def test_several_writers_make_one_version(logger: Logger) -> None:
    logger.log({"old": b"0"})
    writers = [logger.create(digest=f"d{n}", distributedID="group") for n in range(3)]
    assert len({writer["id"] for writer in writers}) == 1
    for number, writer in enumerate(writers):
        _send_later(logger, writer["id"], "PATCH", {f"part{number}": b"%d" % number})
    logger.commit(writers[0]["id"])
    assert logger.contents("data:v1") == {"part0": b"0", "part1": b"1", "part2": b"2"}
    # The next round is a version of its own.
    assert logger.create(digest="d9", distributedID="group")["id"] != writers[0]["id"]


def test_a_manifest_with_another_digest_is_refused(logger: Logger) -> None:
    version = logger.create()["id"]
    given = {"artifactID": version, "name": "m", "digest": md5(b"something else")}
    made = logger.ask(MANIFEST, input=given, includeUpload=True)["createArtifactManifest"]
    url = made["artifactManifest"]["file"]["uploadUrl"]
    answer = logger.client.put(url, json.dumps(manifest_of({})).encode())
    assert answer.status == 400
    assert "was announced" in answer.text


def test_a_late_manifest_changes_no_committed_version(logger: Logger) -> None:
    version = logger.create()["id"]
    logger.upload(version, {"a": b"1"})
    text = json.dumps(manifest_of({"a": b"1"})).encode()
    given = {"artifactID": version, "name": "m", "digest": md5(text)}
    made = logger.ask(MANIFEST, input=given, includeUpload=True)["createArtifactManifest"]
    url = made["artifactManifest"]["file"]["uploadUrl"]
    assert logger.client.put(url, text).status == 200
    logger.commit(version)
    assert logger.client.put(url, text).status == 200  # The first answer was lost.
    assert logger.contents("data:v0") == {"a": b"1"}


@pytest.mark.parametrize(
    "path", ["../up", "a/../../up", "/etc/passwd", "", "a\0b", "..", "a\\..\\b", "x" * 5000]
)
def test_a_path_that_leads_out_of_the_artifact_is_refused(logger: Logger, path: str) -> None:
    version = logger.create()["id"]
    answer = logger.send_manifest(version, manifest_of({path: b"evil"}))
    assert answer.status == 400
    assert "leads out" in answer.text


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{}",
        b'{"contents": []}',
        b'{"contents": {"a": null}}',
        b'{"contents": {"a": {"size": 1}}}',
        b'{"contents": {"a": {"digest": 5}}}',
        b'{"contents": {"a": {"digest": "no md5"}}}',
        b'{"contents": {"a": {"digest": "XUFAKrxLKna5cZ2REBfFkg==", "size": "5"}}}',
        b'{"contents": ' * 100_000,
    ],
)
def test_what_is_no_manifest_is_refused(text: bytes) -> None:
    with pytest.raises(BadManifest):
        parse(text)


@pytest.mark.parametrize("size", [2**63, 10**30])
def test_a_size_that_no_file_has_is_refused(logger: Logger, size: int) -> None:
    manifest = manifest_of({}, far="s3://bucket/x")
    manifest["contents"]["far"]["size"] = size
    artifact = logger.create("odd", f"d{size}")
    answer = logger.send_manifest(artifact["id"], manifest)
    assert (answer.status, "size" in answer.text) == (400, True)


def test_references_that_claim_more_than_integers_hold_are_summed_up(logger: Logger) -> None:
    manifest = manifest_of({}, **{f"far{n}": f"s3://bucket/{n}" for n in range(2_000)})
    for entry in manifest["contents"].values():
        entry["size"] = 2**53
    artifact = logger.create("huge", "d1")
    assert logger.send_manifest(artifact["id"], manifest).status == 200
    logger.commit(artifact["id"])
    version = logger.find("huge:v0")
    assert version is not None
    assert version["size"] == 9 * 10**18


@pytest.mark.parametrize(
    "text",
    [
        b'{"contents": {}}',
        b'{"version": NaN, "contents": {}}',
        b'{"version": 1e400, "contents": {}}',
        b'{"version": 1, "contents": {"a": {"digest": "x", "ref": "x", "extra": -Infinity}}}',
        b'{"version": 1, "contents": {"a": {"digest": "\\ud800", "ref": "x"}}}',
    ],
)
def test_what_could_not_be_written_out_again_is_refused(text: bytes) -> None:
    with pytest.raises(BadManifest):
        parse(text)


def test_many_files(logger: Logger) -> None:
    files = {f"{number:05}.txt": b"%d" % (number % 10) for number in range(5_001)}
    version = logger.create()["id"]
    assert logger.upload(version, files) == 10  # Of each content one.
    assert logger.upload(version, files) == 0
    logger.send_manifest(version, manifest_of(files))
    logger.commit(version)
    assert len(logger.manifest("data")["contents"]) == 5_001
    query = """query ($after: String) { project(name: "birds") { artifact(name: "data") {
      files(after: $after, first: 2000) { pageInfo { hasNextPage endCursor }
        edges { node { name } } } } } }"""
    names, after, more = list[str](), None, True
    while more:
        page = logger.ask(query, after=after)["project"]["artifact"]["files"]
        names += [edge["node"]["name"] for edge in page["edges"]]
        after, more = page["pageInfo"]["endCursor"], page["pageInfo"]["hasNextPage"]
    assert names == sorted(files)
