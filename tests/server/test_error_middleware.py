"""Our own trouble: 503, and the client keeps its data; the log says what it was."""

from __future__ import annotations

import errno
import logging
import sqlite3

import pytest

from runyard.server.people.signed_addresses import Kind
from runyard.server.store.database import DiskFull
from runyard.server.tracker import Tracker
from tests.server.asgi import KEY_ID, Client
from tests.server.conftest import Upsert

STREAM = "/files/ada/birds/run1/file_stream"


@pytest.fixture
def failing(tracker: Tracker, monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """Put an error in, and the next change fails with it."""
    errors: list[BaseException] = []

    async def fail(*_: object, **__: object) -> None:
        raise errors[-1]

    monkeypatch.setattr(tracker, "write", fail)
    return errors


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (DiskFull("database or disk is full"), "disk is full"),
        (OSError(errno.ENOSPC, "No space left on device"), "No space left"),
        (sqlite3.OperationalError("database is locked"), "locked"),
        (sqlite3.IntegrityError("UNIQUE constraint failed: secret"), "IntegrityError"),
        (KeyError("what a client sent"), "KeyError"),
        (RecursionError("deep"), "RecursionError"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_error_is_answered_503(
    client: Client,
    failing: list[BaseException],
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    told: str,
) -> None:
    failing.append(error)
    answer = client.post(STREAM, {})
    assert answer.status == 503
    assert answer.headers["retry-after"] == "5"
    assert told in answer.json()["error"]
    assert "secret" not in answer.text
    assert "what a client sent" not in answer.text
    # Once, and with its traceback if nobody expected it.
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert ("Traceback" in caplog.text) == isinstance(
        error, LookupError | RecursionError | sqlite3.IntegrityError
    )


def test_an_upload_on_a_full_disk(
    client: Client, tracker: Tracker, upsert: Upsert, monkeypatch: pytest.MonkeyPatch
) -> None:
    upsert(name="run1")
    url = tracker.accounts.addresses.url("http://h", Kind.RUN_FILE_UP, KEY_ID, 1, "a")
    with monkeypatch.context() as full:

        def fail(_handle: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        full.setattr("os.fsync", fail)
        answer = client.put(url, b"x")
    assert answer.status == 503
    assert answer.headers["retry-after"]
    assert "No space left" in answer.text
    assert client.put(url, b"x").status == 200


def test_a_request_that_is_cut_off_is_no_trouble(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    for path in (STREAM, "/graphql", "/api/runs"):
        client.request("POST", path, [b"{"], cut=True)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_when_the_answer_has_begun_the_connection_is_cut(
    client: Client, tracker: Tracker, upsert: Upsert, monkeypatch: pytest.MonkeyPatch
) -> None:
    upsert(name="run1")
    client.put(
        tracker.accounts.addresses.url("http://h", Kind.RUN_FILE_UP, KEY_ID, 1, "a"), b"x" * 100_000
    )

    async def fail(*_: object) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("anyio.AsyncFile.read", fail)
    with pytest.raises(OSError, match="Input/output"):
        client.get("/files/ada/birds/run1/a")


def test_a_stream_that_is_ended_is_noted(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    client.post(STREAM, b"nonsense")
    assert "a client's stream ends here" in caplog.text
    assert "nonsense" not in caplog.text
