"""What is asked of artifacts is answered by an index, however many versions and files there are."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest

from runyard.server.artifacts import (
    aliases,
    artifact_deletion,
    artifacts,
    blobs,
    collections,
    manifests,
)
from tests.server.memory import Question, empty_store, full_scans


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    connection = empty_store()
    connection.executescript(
        """
        INSERT INTO projects (key, entity, name, created_at) VALUES (1, 'ada', 'birds', 0);
        INSERT INTO collections (project, name, type, created_at, updated_at)
            VALUES (1, 'data', 'dataset', 0, 0);
        INSERT INTO blobs VALUES ('ada', 'd', 1, 'f');
        """
    )
    yield connection
    connection.close()


@pytest.mark.parametrize(
    "question",
    [
        pytest.param(lambda c: artifacts.by_key(c, 1), id="by_key"),
        pytest.param(lambda c: artifacts.by_name(c, "ada", "birds", "data"), id="by_name"),
        pytest.param(lambda c: artifacts.by_name(c, "ada", "birds", "data:v3"), id="by version"),
        pytest.param(lambda c: artifacts.by_client_id(c, "x"), id="by_client_id"),
        pytest.param(lambda c: artifact_deletion.made_by(c, 1), id="made_by"),
        pytest.param(
            lambda c: artifacts.versions(c, 1, newest=True, after=5, limit=9), id="versions"
        ),
        pytest.param(lambda c: artifacts._twin(c, 1, "d"), id="twin"),
        pytest.param(lambda c: aliases.memberships(c, 1), id="memberships"),
        pytest.param(lambda c: aliases.held(c, 1, 1), id="held aliases"),
        pytest.param(lambda c: blobs.find(c, "ada", "d"), id="find blob"),
        pytest.param(lambda c: blobs.first_missing(c, "ada", 1), id="first_missing"),
        pytest.param(lambda c: blobs.forget_unneeded(c, [("ada", "d")]), id="forget_unneeded"),
        pytest.param(lambda c: blobs.after(c, "ada", "c", 9), id="blobs after"),
        pytest.param(lambda c: collections.by_name(c, "ada", "birds", "data"), id="collection"),
        pytest.param(
            lambda c: collections.listed(c, "ada", "birds", "dataset", after=0, limit=9),
            id="collections",
        ),
        pytest.param(lambda c: collections.types(c, "ada", "birds"), id="types"),
        pytest.param(
            lambda c: artifacts.of_run(c, 1, artifacts.USED, after=0, limit=9), id="used by a run"
        ),
        pytest.param(lambda c: artifacts.runs_of(c, 1, artifacts.USED), id="runs that used it"),
        pytest.param(lambda c: manifests.entries_after(c, 1, "a", 9), id="entries"),
        pytest.param(lambda c: manifests.digests(c, 1), id="digests"),
        pytest.param(lambda c: manifests.settle(c, 1, 0.0), id="settle"),
    ],
)
def test_no_table_is_scanned(connection: sqlite3.Connection, question: Question) -> None:
    assert full_scans(connection, question) == []
