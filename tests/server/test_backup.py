"""A copy of the state folder that is made beside everything else."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from runyard.home import Home, prepare
from runyard.server.api import backup
from runyard.server.api.backup import Cancelled, Progress, copy_state
from runyard.server.app import create_app
from runyard.server.tracker import Tracker
from tests.server.asgi import KEY, Client
from tests.server.processes import Process


@pytest.fixture
def network_home(tmp_path: Path) -> Iterator[Home]:
    """On a file system on which processes cannot share memory through a file."""
    folder, mount = tmp_path / "behind", tmp_path / "mounted"
    folder.mkdir()
    mount.mkdir()
    try:
        command = ["bindfs", "--no-allow-other", str(folder), str(mount)]
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("bindfs cannot mount here")
    yield prepared(mount / "state")
    subprocess.run(["fusermount", "-uz", str(mount)], check=True)


def prepared(path: Path) -> Home:
    home = Home(path)
    prepare(home)
    return home


def ask(client: Client, target: Path) -> list[dict[str, Any]]:
    """The lines of the answer."""
    answer = client.post("/api/server/backup", {"path": str(target)})
    assert answer.status == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


def steps_in(copy: Path) -> list[int]:
    """Read by a server of its own, as a user would."""
    with closing(sqlite3.connect(copy / "runyard.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    tracker = Tracker(Home(copy))
    tracker.open(KEY)
    client = Client(create_app(tracker, stop=lambda: None))
    key = client.get("/api/run", name="run1").json()["key"]
    rows = client.get(f"/api/runs/{key}/rows").text.splitlines()
    client.close()
    tracker.close()
    return [json.loads(row)["_step"] for row in rows]


class Commits(Progress):
    """Has somebody log whenever the copy has got a bit further."""

    def __init__(self, client: Client) -> None:
        super().__init__()
        self.process = Process(client)
        self.process.start()
        self.process.log(0, range(400))
        self.logged = 400

    def go_on(self) -> None:
        for _ in range(5):
            self.process.log(self.logged, [self.logged])
            self.logged += 1


def test_a_copy_is_whole_although_others_log(
    client: Client, tracker: Tracker, tmp_path: Path
) -> None:
    progress = Commits(client)
    tracker._database.read_apart(
        lambda connection: copy_state(connection, tracker.home, tmp_path / "copy", progress)
    )
    assert progress.logged > 405
    assert progress.copied > 0
    steps = steps_in(tmp_path / "copy")
    assert 400 <= len(steps) <= progress.logged
    assert steps == list(range(len(steps)))


def test_nothing_reaches_the_file_while_it_is_copied(client: Client, tracker: Tracker) -> None:
    """Pages that changed under the copy would be of another moment than those before them."""
    process = Process(client)
    process.start()
    database = tracker.home.database
    log = database.with_name("runyard.db-wal")

    def look(connection: sqlite3.Connection) -> None:
        connection.execute("SELECT count(*) FROM runs").fetchone()
        file, begun = database.stat().st_mtime_ns, log.read_bytes()
        assert begun
        for line in range(40):  # More than a commit works off by itself.
            process.post({"output.log": (line, [os.urandom(100_000).hex()])})
        assert log.stat().st_size > 1000 * 4096
        assert database.stat().st_mtime_ns == file
        assert log.read_bytes().startswith(begun)

    before = database.stat().st_mtime_ns
    tracker._database.read_apart(look)
    assert database.stat().st_mtime_ns > before, "the log is worked off at the end"


def test_a_copy_of_a_network_home(
    network_home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "ada")
    tracker = Tracker(network_home)
    tracker.open(KEY)
    client = Client(create_app(tracker, stop=lambda: None))
    process = Process(client)
    process.start()
    process.log(0, range(10))
    # A reader that is under way, and the writer, at once.
    question = "SELECT count(*) FROM runs"
    tracker._database.read(
        lambda connection: (
            connection.execute(question).fetchone(),
            tracker._database.write(lambda c: c.execute(question).fetchone()).result(timeout=60),
        )
    ).result(timeout=60)
    assert ask(client, tmp_path / "copy")[-1]["bytes"] > 0
    client.close()
    tracker.close()
    assert steps_in(tmp_path / "copy") == list(range(10))


def test_files_are_in_the_copy(client: Client, tracker: Tracker, tmp_path: Path) -> None:
    home = tracker.home
    Process(client).start()
    for folder in (home.files, home.blobs, home.spool, home.runs):
        (folder / "a").mkdir()
        (folder / "a" / "b").write_text("kept")
        (folder / "unfinished").mkdir(exist_ok=True)
        (folder / "unfinished" / "c").write_text("half")
        (folder / "link").symlink_to("/nowhere")
    ask(client, tmp_path / "copy")
    for folder in (home.files, home.blobs, home.spool, home.runs):
        copied = tmp_path / "copy" / folder.name
        assert (copied / "a" / "b").read_text() == "kept"
        assert (copied / "link").is_symlink()
        assert not (copied / "unfinished").exists()


def test_nothing_is_left_of_a_copy_that_failed(
    client: Client, tracker: Tracker, tmp_path: Path
) -> None:
    progress = Progress()
    progress.cancelled.set()
    with pytest.raises(Cancelled):
        tracker._database.read_apart(
            lambda connection: copy_state(connection, tracker.home, tmp_path / "copy", progress)
        )
    assert not list(tmp_path.glob("copy*"))
    (tmp_path / "file").write_text("")
    assert "NotADirectory" in ask(client, tmp_path / "file" / "copy")[-1]["error"]
    # Nobody removes what another copy is making.
    (tmp_path / "copy.part").mkdir()
    assert client.post("/api/server/backup", {"path": str(tmp_path / "copy")}).status == 409
    assert (tmp_path / "copy.part").is_dir()


def test_who_waits_hears_how_far_it_is(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For as long as it takes: the command would take silence for a server that hangs."""

    class Slow(Progress):
        told = 0

        def __getattribute__(self, name: str) -> Any:
            if name == "total":
                self.told += 1
            return super().__getattribute__(name)

        def go_on(self) -> None:
            while self.told < 3:
                self.cancelled.wait(0.01)

    monkeypatch.setattr(backup, "_TELL_EVERY", 0.01)
    monkeypatch.setattr(backup, "Progress", Slow)
    *progress, done = ask(client, tmp_path / "copy")
    assert len(progress) >= 3
    assert all(line.keys() == {"copied", "total"} for line in progress)
    assert done["path"] == str(tmp_path / "copy")
