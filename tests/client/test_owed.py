"""Which records of wandb clients the server is owed, and which are better left alone."""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path

import pytest

from runyard.client.owed import Owed, Record, find_records, read_owed, write_owed
from runyard.home import Home, prepare


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "state")
    prepare(home)
    return home


def a_record(home: Home, run: str, kind: str = "offline-run", age: float = 0.0) -> Path:
    folder = home.runs / run / "wandb" / f"{kind}-20260101_000000-{run}"
    folder.mkdir(parents=True)
    file = folder / f"run-{run}.wandb"
    file.write_bytes(b":W&B")
    os.utime(file, (time.time() - age, time.time() - age))
    return folder


def only(home: Home) -> Record:
    (record,) = find_records(home)
    return record


def note(run: str = "r1", **more: object) -> Owed:
    return Owed(run=run, host=socket.gethostname(), pid=os.getpid(), **more)  # type: ignore[arg-type]


def test_a_program_that_runs_is_left_alone(home: Home) -> None:
    a_record(home, "r1", age=9_999)
    write_owed(home.runs / "r1", note())
    assert only(home).is_alive
    write_owed(home.runs / "r1", note().ended(time.time()))
    assert not only(home).is_alive


def test_a_program_that_was_killed_is_not_waited_for(home: Home) -> None:
    a_record(home, "r1")
    write_owed(home.runs / "r1", Owed(run="r1", host=socket.gethostname(), pid=2**22 + 1))
    assert not only(home).is_alive


def test_on_another_machine_a_quiet_record_counts_as_finished(home: Home) -> None:
    folder = a_record(home, "r1")
    write_owed(home.runs / "r1", Owed(run="r1", host="node7", pid=os.getpid()))
    assert only(home).is_alive
    os.utime(folder / "run-r1.wandb", (0, 0))
    assert not only(home).is_alive


def test_what_the_client_sent_itself_is_not_owed(home: Home) -> None:
    a_record(home, "r1", kind="run")
    assert list(find_records(home)) == []
    # Unless the server went away under it.
    write_owed(home.runs / "r1", note(online=True).ended(1.0))
    record = only(home)
    assert not record.is_synced
    record.mark_synced()
    assert only(home).is_synced


def test_the_clients_own_mark_is_believed(home: Home) -> None:
    folder = a_record(home, "r1")
    assert not only(home).is_synced
    (folder / "run-r1.wandb.synced").touch()
    assert only(home).is_synced


def test_the_python_that_wrote_it_is_known(home: Home, tmp_path: Path) -> None:
    folder = a_record(home, "r1")
    write_owed(home.runs / "r1", note(python="/usr/bin/python-by-looks"))
    assert only(home).python == "/usr/bin/python-by-looks"
    (folder / "files").mkdir()
    python = tmp_path / "python"
    python.touch()
    (folder / "files" / "wandb-metadata.json").write_text(json.dumps({"executable": str(python)}))
    assert only(home).python == str(python)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"pid": 1}'])
def test_a_damaged_note_is_no_note(home: Home, text: str) -> None:
    a_record(home, "r1", age=9_999)
    (home.runs / "r1" / "owed.json").write_text(text)
    assert read_owed(home.runs / "r1") is None
    assert not only(home).is_alive
