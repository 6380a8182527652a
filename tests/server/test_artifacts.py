"""Versions: numbered at commit, one for each content, with aliases that belong to one of them."""

from __future__ import annotations

import base64

import pytest

from tests.server.artifact_logger import COMMIT, CREATE, Logger, digest_of, manifest_of
from tests.server.asgi import Client
from tests.server.conftest import Upsert

FILES = {"a.txt": b"hello", "deep/er/b.bin": bytes(range(256)), "empty": b""}


@pytest.fixture
def logger(client: Client) -> Logger:
    return Logger(client)


def test_a_version_comes_and_goes_whole(logger: Logger) -> None:
    version = logger.log(FILES, description="birds in flight", metadata='{"n": [1, 2]}')
    assert version["versionIndex"] == 0
    assert version["state"] == "COMMITTED"
    assert version["artifactType"] == {"name": "dataset"}
    assert (version["fileCount"], version["size"]) == (3, 261)
    assert version["description"] == "birds in flight"
    assert version["metadata"] == '{"n": [1, 2]}'
    assert (version["ttlDurationSeconds"], version["ttlIsInherited"]) == (-2, True)
    assert logger.contents("data") == FILES
    base64.b64decode(version["id"], validate=True)


def test_the_manifest_comes_back_without_the_paths_of_its_maker(logger: Logger) -> None:
    logger.log(FILES)
    content = logger.manifest("data")
    assert content["storagePolicyConfig"] == {"storageLayout": "V2"}
    assert content["version"] == 1
    assert sorted(content["contents"]) == sorted(FILES)
    assert content["contents"]["a.txt"] == {"digest": "XUFAKrxLKna5cZ2REBfFkg==", "size": 5}


def test_the_same_content_makes_no_new_version_and_moves_the_aliases(logger: Logger) -> None:
    first = logger.log({"a": b"1"}, aliases=[{"alias": "latest"}, {"alias": "best"}])
    logger.log({"a": b"2"})
    assert logger.names("data:v1") == ["latest", "v1"]
    again = logger.create("data", digest_of(manifest_of({"a": b"1"})))
    assert (again["id"], again["state"]) == (first["id"], "COMMITTED")
    assert logger.names("data:v0") == ["best", "latest", "v0"]
    assert logger.names("data:v1") == ["v1"]


def test_changed_content_is_the_next_version(logger: Logger) -> None:
    assert [logger.log({"a": b"%d" % n})["versionIndex"] for n in range(3)] == [0, 1, 2]
    assert logger.create("data", "new")["artifactSequence"]["latestArtifact"]["versionIndex"] == 2


def test_the_same_content_under_another_name_is_another_artifact(logger: Logger) -> None:
    assert logger.log(FILES, "one")["id"] != logger.log(FILES, "two")["id"]


def test_numbers_are_given_at_commit(logger: Logger) -> None:
    slow, quick = logger.create(digest="slow"), logger.create(digest="quick")
    for version, content in ((slow, b"slow"), (quick, b"quick")):
        logger.upload(version["id"], {"f": content})
        logger.send_manifest(version["id"], manifest_of({"f": content}))
    logger.commit(quick["id"])
    logger.commit(slow["id"])
    assert logger.contents("data:v0") == {"f": b"quick"}
    assert logger.contents("data:v1") == {"f": b"slow"}


def test_two_that_commit_the_same_at_once_make_one_version(logger: Logger) -> None:
    digest, files = digest_of(manifest_of(FILES)), FILES
    both = [logger.create(digest=digest, clientID=f"client{n}") for n in range(2)]
    assert both[0]["id"] != both[1]["id"]
    for version in both:
        logger.upload(version["id"], files)
        logger.send_manifest(version["id"], manifest_of(files))
    for version in both:
        logger.commit(version["id"])
    assert logger.find("data:v1") is None
    by_id = "query ($id: ID!) { artifact(id: $id) { id versionIndex } }"
    for version in both:  # Each client finds what it committed.
        assert logger.ask(by_id, id=version["id"])["artifact"]["versionIndex"] == 0
    assert logger.contents("data") == files


def test_each_request_can_be_sent_twice(logger: Logger) -> None:
    version = logger.create(clientID="c1")
    assert logger.create(clientID="c1")["id"] == version["id"]
    for _ in range(2):
        logger.upload(version["id"], FILES)
        logger.send_manifest(version["id"], manifest_of(FILES))
    assert logger.commit(version["id"]) == logger.commit(version["id"])
    assert logger.create(clientID="c1")["state"] == "COMMITTED"
    assert logger.find("data:v1") is None
    assert logger.contents("data:v0") == FILES


def test_a_client_id_leads_to_its_artifact_and_its_collection(logger: Logger) -> None:
    version = logger.create(clientID="c1", sequenceClientID="s1")
    query = "query ($id: ID!) { clientIDMapping(clientID: $id) { serverID } }"
    assert logger.ask(query, id="c1")["clientIDMapping"]["serverID"] == version["id"]
    sequence = version["artifactSequence"]["id"]
    assert logger.ask(query, id="s1")["clientIDMapping"]["serverID"] == sequence
    assert logger.ask(query, id="c2")["clientIDMapping"] is None


def test_the_run_that_made_it_is_known(logger: Logger, upsert: Upsert) -> None:
    upsert(name="maker")
    upsert(name="second")
    assert logger.log(FILES, runName="maker")["createdBy"] == {"name": "maker"}
    assert logger.log(FILES, runName="second")["createdBy"] == {"name": "maker"}


def test_what_cannot_be_an_artifact_is_refused(logger: Logger) -> None:
    good = {"projectName": "birds", "artifactTypeName": "t", "artifactCollectionName": "n",
            "digest": "d"}  # fmt: skip
    for wrong, word in (
        ({"artifactCollectionName": "../up"}, "cannot be the name of an artifact"),
        ({"artifactCollectionName": ""}, "cannot be the name of an artifact"),
        ({"artifactTypeName": "a/b"}, "artifact type"),
        ({"projectName": "a/b"}, "cannot be a project"),
        ({"aliases": [{"alias": "v7"}]}, "alias"),
        ({"aliases": [{"alias": "a:b"}]}, "alias"),
        ({"aliases": ["latest"]}, "not a list of objects"),
        ({"metadata": "nonsense"}, "metadata is not JSON"),
        ({"historyStep": 2**70}, "historyStep"),
        ({"digest": ""}, "digest"),
        ({"storageRegion": "coreweave-us"}, "no storage region 'coreweave-us' here"),
    ):
        assert word in logger.refused(CREATE, input={**good, **wrong}), wrong


def test_a_region_of_the_servers_own_is_none(logger: Logger) -> None:
    """By this name W&B's own server knows its disk; the other regions are refused above."""
    assert logger.create(storageRegion="minio-local")["state"] == "PENDING"


def test_a_name_has_one_type(logger: Logger) -> None:
    logger.log(FILES)
    given = {"projectName": "birds", "artifactTypeName": "model", "artifactCollectionName": "data",
             "digest": "d"}  # fmt: skip
    assert "type dataset" in logger.refused(CREATE, input=given)


def test_a_version_is_not_committed_before_all_of_it_is_here(logger: Logger) -> None:
    version = logger.create()["id"]
    assert "manifest has not arrived" in logger.refused(COMMIT, id=version)
    logger.send_manifest(version, manifest_of(FILES))
    assert "have not arrived" in logger.refused(COMMIT, id=version)
    logger.upload(version, FILES)
    logger.commit(version)
    assert logger.find("data:v0") is not None


def test_what_is_no_id_of_ours_is_refused(logger: Logger) -> None:
    for wrong in ("", "x", "!!", base64.b64encode(b"Artifact:-1").decode(),
                  base64.b64encode(b"Run:1").decode(),
                  base64.b64encode(b"Artifact:99999999999999999999").decode()):  # fmt: skip
        assert "artifact" in logger.refused(COMMIT, id=wrong).lower()
    missing = base64.b64encode(b"Artifact:77").decode()
    assert "no such artifact" in logger.refused(COMMIT, id=missing)
