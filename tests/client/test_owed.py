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

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")


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


@pytest.fixture
def taken(tmp_path: Path) -> Path:
    """A folder that a client wrote outside the state folder, and its own Python beside it."""
    folder = tmp_path / "project" / "wandb" / "offline-run-20260101_000000-r1"
    (folder / "files").mkdir(parents=True)
    (folder / "run-r1.wandb").write_bytes(b":W&B")
    python = tmp_path / "environment" / "bin" / "python"
    python.parent.mkdir(parents=True)
    (python.parent / "python3").touch()
    python.symlink_to("../bin/python3")
    metadata = folder / "files" / "wandb-metadata.json"
    metadata.write_text(json.dumps({"executable": str(python)}))
    for path in sorted(tmp_path.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755)
    return tmp_path


def taken_record(home: Home, taken: Path) -> Record:
    (record,) = find_records(home, [taken / "project"])
    return record


def test_the_python_of_a_taken_record_is_run_if_all_of_it_is_the_users(
    home: Home, taken: Path
) -> None:
    assert taken_record(home, taken).python == str(taken / "environment" / "bin" / "python")
    (taken / "project" / "wandb").chmod(0o1777)  # There others replace nothing of ours.
    assert taken_record(home, taken).python is not None


RECORD = "project/wandb/offline-run-20260101_000000-r1"
OF_TAKEN = [
    f"{RECORD}/files/wandb-metadata.json", f"{RECORD}/files", "project",
    "environment/bin/python3", "environment/bin", "environment",
]  # fmt: skip


@pytest.mark.parametrize("part", OF_TAKEN)
def test_no_python_is_run_whose_name_or_file_others_can_write(
    home: Home, taken: Path, part: str
) -> None:
    (taken / part).chmod(0o777)
    record = taken_record(home, taken)
    assert record.python is None
    assert record.named_python is not None
    assert "others can write" in str(record.named_python.refusal)


@as_root
@pytest.mark.parametrize("part", [*OF_TAKEN, "environment/bin/python"])
def test_no_python_is_run_whose_name_or_file_is_somebody_elses(
    home: Home, taken: Path, part: str
) -> None:
    os.chown(taken / part, 54321, -1, follow_symlinks=False)
    assert taken_record(home, taken).python is None


def test_group_members_count_as_others(home: Home, taken: Path) -> None:
    files = taken / RECORD / "files"
    files.chmod(0o775)
    # Nobody is in the group but the user: many systems give each one such a group.
    is_private = files.stat().st_gid == 0 or files.group() == files.owner()
    assert (taken_record(home, taken).python is not None) == is_private


@as_root
def test_a_group_of_several_people_can_write(home: Home, taken: Path) -> None:
    os.chown(taken / RECORD, -1, 54321)
    assert taken_record(home, taken).python is not None
    (taken / RECORD).chmod(0o775)
    assert taken_record(home, taken).python is None


def test_a_note_outside_the_state_folder_names_no_python_of_others(home: Home, taken: Path) -> None:
    (taken / RECORD / "files" / "wandb-metadata.json").unlink()
    python = str(taken / "environment" / "bin" / "python")
    write_owed(taken / "project", note(python=python))
    assert taken_record(home, taken).python == python
    (taken / "project" / "owed.json").chmod(0o666)
    assert taken_record(home, taken).python is None


@as_root
def test_in_the_state_folder_too_a_file_of_somebody_else_names_no_python(
    home: Home, taken: Path
) -> None:
    files = a_record(home, "r1") / "files"
    files.mkdir()
    metadata = files / "wandb-metadata.json"
    metadata.write_text(json.dumps({"executable": str(taken / "environment" / "bin" / "python")}))
    (taken / "environment").chmod(0o777)  # The user's program has run it there already.
    assert only(home).python is not None
    os.chown(metadata, 54321, -1)
    assert only(home).python is None


@pytest.mark.parametrize("text", ["", "[]", "{", '{"pid": 1}'])
def test_a_damaged_note_is_no_note(home: Home, text: str) -> None:
    a_record(home, "r1", age=9_999)
    (home.runs / "r1" / "owed.json").write_text(text)
    assert read_owed(home.runs / "r1") is None
    assert not only(home).is_alive
