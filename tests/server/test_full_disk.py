"""A disk that is really full: nothing half-written, and all is well when there is room again."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard.home import Home, prepare
from runyard.server.app import create_app
from runyard.server.processes.console_lines import count_lines, get_lines, put_lines
from runyard.server.store.database import Database, DiskFull
from runyard.server.tracker import Tracker
from tests.server.asgi import KEY, Client
from tests.server.conftest import a_run
from tests.server.persons import UPSERT


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "none", str(folder)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip("only root may mount a small disk")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def _fill(folder: Path) -> Path:
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass
    return filler


def _fits(database: Database, key: int, number: int, size: int) -> bool:
    """Put a line that cannot be compressed away."""
    text = os.urandom(size).hex()
    try:
        database.write(lambda c: put_lines(c, key, "history", number, [text])).result()
    except DiskFull:
        return False
    return True


def test_the_store_fills_up_and_gets_room_again(small_disk: Path) -> None:
    database = Database(small_disk / "runyard.db")
    database.open()
    key, stored = a_run(database), 0
    filler = _fill(small_disk)
    while _fits(database, key, stored, size=2_000):
        stored += 1
    # What was answered is there, what was not is not; reading goes on.
    assert database.read(lambda c: count_lines(c, key, "history")).result() == stored
    for _ in range(3):
        assert not _fits(database, key, stored, size=200_000)
    filler.unlink()
    database.write(lambda c: put_lines(c, key, "history", stored, ["room again"])).result()
    lines = dict(database.read(lambda c: list(get_lines(c, key, "history"))).result())
    assert sorted(lines) == list(range(stored + 1))
    database.close()
    check = sqlite3.connect(small_disk / "runyard.db")
    assert check.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    assert check.execute("SELECT max(stop) FROM lines").fetchone()[0] == stored + 1
    check.close()


def test_clients_are_told_to_come_back(small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(small_disk / "state")
    prepare(home)
    tracker = Tracker(home)
    tracker.open(KEY)
    client = Client(create_app(tracker, stop=lambda: None))
    names = {"name": "run1", "project": "birds", "entity": "ada", "host": "node1"}
    client.graphql(UPSERT, names)
    files = client.graphql(
        'mutation { createRunFiles(input: {entityName: "ada", projectName: "birds", '
        'runName: "run1", files: ["model.bin"]}) { files { uploadUrl } } }'
    )["data"]["createRunFiles"]["files"]
    url = files[0]["uploadUrl"]
    assert client.put(url, b"old").status == 200

    filler = _fill(small_disk)
    answer = client.put(url, *[b"n" * 500_000] * 4)
    assert answer.status == 503
    assert answer.headers["retry-after"]
    line = os.urandom(500_000).hex()
    post = {"files": {"wandb-history.jsonl": {"offset": 0, "content": [line]}}}
    stream = client.post("/files/ada/birds/run1/file_stream", post)
    assert stream.status == 503
    assert "DiskFull" in stream.json()["error"]
    assert client.get("/files/ada/birds/run1/model.bin").body == b"old"
    assert not list((home.files / "unfinished").iterdir())

    filler.unlink()
    assert client.put(url, *[b"n" * 100_000] * 2).status == 200
    assert client.post("/files/ada/birds/run1/file_stream", post).status == 200
    assert client.get("/files/ada/birds/run1/model.bin").body == b"n" * 200_000
    client.close()
    tracker.close()
