"""Contents of artifacts: checked, stored once, whole or not at all, and gone when unneeded."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import pytest

from runyard.home import Home
from runyard.server.artifacts import artifact_deletion, artifacts
from runyard.server.people.signed_addresses import Addresses, Kind
from runyard.server.tracker import Tracker
from tests.server.artifact_logger import (
    COMMIT,
    FILES,
    Logger,
    digest_of,
    manifest_of,
    md5,
)
from tests.server.asgi import KEY_ID, Client
from tests.server.conftest import Upsert

DELETE = """mutation ($id: ID!, $aliases: Boolean) {
  deleteArtifact(input: {artifactID: $id, deleteAliases: $aliases}) { artifact { id } } }"""
DELETE_RUN = """mutation ($id: ID!, $artifacts: Boolean) {
  deleteRun(input: {id: $id, deleteArtifacts: $artifacts}) { clientMutationId } }"""
HELLO = "5d41402abc4b2a76b9719d911017c592"


@pytest.fixture
def logger(client: Client) -> Logger:
    return Logger(client)


def stored(home: Home) -> list[Path]:
    return [path for path in home.blobs.rglob("*") if path.is_file()]


def test_a_content_is_stored_once(logger: Logger, home: Home) -> None:
    logger.log({"a": b"same", "b": b"same"}, "one")
    logger.log({"c": b"same", "d": b"other"}, "two")
    assert len(stored(home)) == 2
    version = logger.create("three", "x")["id"]
    nodes = logger.announce(version, {"e": b"same", "f": b"new", "g": b"other"})
    assert [node["displayName"] for node in nodes] == ["e", "f", "g"]
    assert [node["uploadUrl"] is None for node in nodes] == [True, False, True]
    assert {node["artifact"]["id"] for node in nodes} == {version}
    assert all(node["uploadMultipartUrls"] is None for node in nodes)


def test_only_its_owner_can_read_it_on_disk(logger: Logger, home: Home) -> None:
    logger.log({"a": b"hello"})
    (file,) = stored(home)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.name.startswith(HELLO)


def test_what_is_not_what_was_announced_is_not_stored(logger: Logger, home: Home) -> None:
    version = logger.create()["id"]
    (node,) = logger.announce(version, {"a": b"right"})
    answer = logger.client.put(node["uploadUrl"], b"wr", b"ong")
    assert answer.status == 400
    assert "was announced" in answer.text
    assert not stored(home)
    logger.send_manifest(version, manifest_of({"a": b"right"}))
    assert "'a' have not arrived" in logger.refused(COMMIT, id=version)
    assert logger.client.put(node["uploadUrl"], b"ri", b"ght").status == 200
    logger.commit(version)
    assert logger.contents("data") == {"a": b"right"}


def test_cut_off_half_way_nothing_is_stored(logger: Logger, home: Home) -> None:
    version = logger.create()["id"]
    (node,) = logger.announce(version, {"a": b"x" * 3_000_000})
    assert logger.client.put(node["uploadUrl"], b"x" * 2_000_000, cut=True).status == 0
    assert not stored(home)


def test_sent_twice_it_is_stored_once(logger: Logger, home: Home) -> None:
    version = logger.create()["id"]
    (node,) = logger.announce(version, {"a": b"1"})
    for _ in range(2):
        assert logger.client.put(node["uploadUrl"], b"1").status == 200
    assert len(stored(home)) == 1


def test_a_part_of_a_large_file(logger: Logger) -> None:
    logger.log({"a": b"0123456789"})
    found = logger.find("data")
    assert found is not None
    url = found["files"]["edges"][0]["node"]["directUrl"]
    answer = logger.download(url, range="bytes=2-4")
    assert (answer.status, answer.body) == (206, b"234")
    assert answer.headers["content-disposition"].startswith("attachment")


def test_an_address_is_worth_nothing_for_anything_else(logger: Logger, tracker: Tracker) -> None:
    logger.log({"a": b"hello"})
    client, digest = logger.client, md5(b"hello")

    def token(addresses: Addresses, kind: Kind, *claim: str | int) -> str:
        return addresses.url("", kind, KEY_ID, *claim).rpartition("/")[2]

    up = token(tracker.accounts.addresses, Kind.BLOB_UP, "ada", digest)
    down = token(tracker.accounts.addresses, Kind.BLOB_DOWN, 1, digest, "a")
    stranger = token(Addresses(b"another secret"), Kind.BLOB_DOWN, 1, digest, "a")
    for forged in (up, stranger, down[:-2], "x"):
        path = f"/downloads/wandb_artifacts/{forged}"
        assert client.request("GET", path, key=None).status == 403
    for path in ("/uploads/artifacts", "/uploads/manifests", "/uploads"):
        assert client.put(f"{path}/{down}", b"hello").status == 403
    assert client.request("GET", f"/downloads/wandb_artifacts/{down}", key=None).status == 200


@pytest.mark.parametrize(
    "path",
    [
        f"/artifactsV2/default/ada/QXJ0aWZhY3Q6MQ==/{HELLO}",
        f"/artifactsV2/default/ada/birds/data/QXJ0aWZhY3Q6MQ==/{HELLO}/a.txt",
        f"/artifactsV2/default/ada/birds/data/QXJ0/QXJ0aWZhY3Q6MQ==/{HELLO}/a.txt",
        f"/artifacts/ada/{HELLO}",
    ],
)
def test_a_file_is_found_by_its_md5_with_the_key(logger: Logger, path: str) -> None:
    assert logger.client.get(path).status == 404
    logger.log({"a.txt": b"hello"})
    assert logger.client.get(path).body == b"hello"
    assert logger.client.get(path, key=None).status == 401
    assert logger.client.get(path.replace("/ada/", "/bob/")).status == 404
    assert logger.client.get(path.replace(HELLO, "nothing")).status == 404


def test_another_entity_has_to_bring_its_own(logger: Logger) -> None:
    logger.log({"a": b"secret"})
    version = logger.create(entityName="bob")["id"]
    (node,) = logger.announce(version, {"mine": b"secret"})
    assert node["uploadUrl"] is not None
    logger.send_manifest(version, manifest_of({"mine": b"secret"}))
    assert "have not arrived" in logger.refused(COMMIT, id=version)


def test_deletion_gives_the_space_back(logger: Logger, home: Home) -> None:
    logger.log({"a": b"shared", "b": b"first"})
    second = logger.log({"a": b"shared", "b": b"second"})
    assert len(stored(home)) == 3
    logger.ask(DELETE, id=second["id"], aliases=True)
    assert logger.find("data:v1") is None
    assert sorted(path.read_bytes() for path in stored(home)) == [b"first", b"shared"]
    assert logger.contents("data:v0") == {"a": b"shared", "b": b"first"}


def test_what_an_upload_counts_on_is_not_deleted_under_it(logger: Logger, home: Home) -> None:
    old = logger.log({"a": b"shared"}, "old")
    version = logger.create("new", digest_of(manifest_of({"b": b"shared"})))["id"]
    (node,) = logger.announce(version, {"b": b"shared"})
    assert node["uploadUrl"] is None
    logger.ask(DELETE, id=old["id"], aliases=True)
    assert len(stored(home)) == 1
    logger.send_manifest(version, manifest_of({"b": b"shared"}))
    logger.commit(version)
    assert logger.contents("new") == {"b": b"shared"}


def test_a_sweep_removes_what_a_killed_server_left_and_nothing_else(
    logger: Logger, tracker: Tracker, home: Home
) -> None:
    logger.log({"a": b"gone"}, "gone")
    logger.log({"a": b"kept"}, "kept")
    (folder,) = {path.parent for path in stored(home) if path.read_bytes() == b"gone"}
    # Killed after the rows were deleted, or before a file was recorded.
    stray = folder / f"{HELLO}-0123456789ab"
    stray.write_bytes(b"hello")

    async def delete_and_sweep() -> int:
        member = await tracker.read(artifacts.by_name, "ada", "birds", "gone")
        assert member is not None
        await tracker.write(artifact_deletion.delete, member["artifact"], with_aliases=True)
        assert len(stored(home)) == 3
        return await tracker.blobs.sweep(tracker)

    assert asyncio.run(delete_and_sweep()) == 2
    assert [path.read_bytes() for path in stored(home)] == [b"kept"]
    assert logger.contents("kept") == {"a": b"kept"}


def test_a_sweep_ends_uploads_that_never_came_to_an_end(
    logger: Logger, tracker: Tracker, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = logger.create()["id"]
    logger.upload(version, {"a": b"1"})
    assert asyncio.run(tracker.blobs.sweep(tracker)) == 0
    monkeypatch.setattr("runyard.server.artifacts.blob_files._ABANDONED_AFTER", -1.0)
    assert asyncio.run(tracker.blobs.sweep(tracker)) == 1
    assert not stored(home)
    assert "no such artifact" in logger.refused(COMMIT, id=version)


def test_a_sweep_deletes_versions_whose_time_to_live_is_over(
    logger: Logger, tracker: Tracker, home: Home
) -> None:
    hour = 3600
    for name, ttl in (("short", hour), ("long", 100 * hour), ("for ever", None), ("off", -2)):
        more = {} if ttl is None else {"ttlDurationSeconds": ttl}
        logger.log({"a": name.encode()}, name, **more)
    linked = logger.log({"a": b"linked"}, "linked", ttlDurationSeconds=hour)
    logger.ask(
        'mutation($id: ID!) { linkArtifact(input: {artifactID: $id, projectName: "birds", '
        'artifactPortfolioName: "chosen", aliases: []}) { versionIndex } }',
        id=linked["id"],
    )
    assert asyncio.run(tracker.blobs.sweep(tracker)) == 0
    tracker._database.write(
        lambda connection: connection.execute(
            "UPDATE artifacts SET created_at = created_at - ?", (2 * hour,)
        )
    ).result()
    assert asyncio.run(tracker.blobs.sweep(tracker)) == 1
    assert logger.find("short:latest") is None  # Its alias did not protect it.
    kept = {path.read_bytes() for path in stored(home)}
    assert kept == {b"long", b"for ever", b"off", b"linked"}
    assert logger.contents("chosen:latest") == {"a": b"linked"}


def test_no_md5_is_no_file(logger: Logger) -> None:
    version = logger.create()["id"]
    for wrong in ("", "abc", "XUFA", "5d41402abc4b2a76b9719d911017c592"):
        spec = {"artifactID": version, "name": "a", "md5": wrong}
        assert "not an MD5" in logger.refused(FILES, input={"artifactFiles": [spec]})


def test_a_deleted_run_takes_its_artifacts_with_it_if_it_is_told_to(
    logger: Logger, home: Home, upsert: Upsert
) -> None:
    made = {name: upsert(name=name)["bucket"]["id"] for name in ("one", "two", "three")}
    logger.log(
        {"a": b"only mine"},
        "mine",
        runName="one",
        aliases=[{"artifactCollectionName": "mine", "alias": "best"}],
    )
    logger.log({"a": b"the same"}, "both", runName="one")
    logger.log({"a": b"the same"}, "both", runName="two")  # Identical: makes no new version.
    logger.log({"a": b"only mine", "b": b"more"}, "third", runName="three")
    logger.announce(logger.create("cut short", "x", runName="one")["id"], {"c": b"claimed"})

    logger.ask(DELETE_RUN, id=made["one"], artifacts=True)
    assert logger.find("mine:best") is None
    assert logger.contents("both:latest") == {"a": b"the same"}  # The other run logged it, too.
    assert logger.contents("third:latest") == {"a": b"only mine", "b": b"more"}
    logger.ask(DELETE_RUN, id=made["two"], artifacts=False)
    assert logger.contents("both:latest") == {"a": b"the same"}
    assert len(stored(home)) == 3
    logger.ask(DELETE_RUN, id=made["three"], artifacts=True)
    assert logger.find("third:latest") is None
    assert [path.read_bytes() for path in stored(home)] == [b"the same"]


def test_what_a_run_found_to_be_there_already_stays_when_the_run_goes(
    logger: Logger, upsert: Upsert
) -> None:
    """Two clients uploaded the same at once: the second one's version is the first one's."""
    upsert(name="first")
    second = upsert(name="second")["bucket"]["id"]
    files = {"a": b"contents"}
    manifest = manifest_of(files)
    made = [logger.create("data", digest_of(manifest), runName=run) for run in ("first", "second")]
    for version in made:
        logger.upload(version["id"], files)
        logger.send_manifest(version["id"], manifest)
        logger.commit(version["id"])
    logger.ask(DELETE_RUN, id=second, artifacts=True)
    assert logger.contents("data:v0") == files


def test_artifacts_that_are_not_ones_own_stay(
    logger: Logger, tracker: Tracker, upsert: Upsert
) -> None:
    """As where a run was moved out of a team that its user has left."""
    upsert(name="run1")
    logger.log({"a": b"the team's"}, runName="run1")
    freed = tracker._database.write(
        lambda connection: artifact_deletion.delete_made_by(connection, 1, {"bob"}.__contains__)
    ).result()
    assert freed == []
    assert logger.contents("data:v0") == {"a": b"the team's"}
