"""`runyard sync` and a client that cannot start the service it sends with."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from runyard.actions.tidying import sync
from runyard.client.owed import Record
from runyard.home import Discovery, Home, prepare
from runyard.node.attempt.offline import find_interpreter

# As 0.16 does it: the service is a process of its own, keeps the output, and outlives its client.
CLIENT = """
import os, pathlib, subprocess, sys
folder = pathlib.Path(sys.argv[-1])
starts = folder.parent / "starts"
with starts.open("a") as file:
    file.write("x")
if len(starts.read_text()) <= int(sys.argv[1]):
    service = subprocess.Popen(["sh", "-c", 'sleep 30; touch "$0"', folder.parent / "awaited"])
    with (folder.parent / "services").open("a") as file:
        print(service.pid, file=file)
    print("Connection to wandb service failed: refused", file=sys.stderr)
    os._exit(1)
(folder / "run-r1.wandb.synced").touch()
"""


DISCOVERY = Discovery("http://here", "k", 1, "here", "127.0.0.1", 1, "1", 0.0, running=True)


@pytest.mark.parametrize("failures", [1, 9])
def test_a_client_whose_service_does_not_start_is_called_again_and_its_service_not_awaited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failures: int
) -> None:
    record = Record(tmp_path / "offline-run-1-r1", "r1", None, None)
    record.folder.mkdir()
    command = [sys.executable, "-c", CLIENT, str(failures)]
    monkeypatch.setattr(sync, "_clients", lambda _record: [command])
    monkeypatch.setattr(sync, "read_discovery", lambda _home: DISCOVERY)
    message = sync.sync_record(Home(tmp_path / "state"), record, "key")
    services = (tmp_path / "services").read_text().split()
    for service in services:
        os.kill(int(service), signal.SIGKILL)
    assert not (tmp_path / "awaited").exists()
    if failures == 1:
        assert message is None
        assert record.is_synced
    else:
        assert message == "Connection to wandb service failed: refused"
        assert len(services) == 3


def test_a_program_that_a_record_of_others_names_is_not_run_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "theirs" / "offline-run-1-r1"
    folder.mkdir(parents=True)
    (folder / "run-r1.wandb").write_bytes(b":W&B")
    evil = tmp_path / "theirs" / "evil.sh"
    evil.write_text(f'#!/bin/sh\necho "$WANDB_API_KEY" >{tmp_path}/stolen\n')
    evil.chmod(0o755)
    (folder / "wandb-metadata.json").write_text(json.dumps({"executable": str(evil)}))
    (tmp_path / "theirs").chmod(0o777)
    home = Home(tmp_path / "state")
    prepare(home)
    monkeypatch.setattr(sync, "read_discovery", lambda _home: DISCOVERY)
    monkeypatch.setattr(sync, "_key_of_its_own", lambda _api: contextlib.nullcontext("key"))
    monkeypatch.setattr(sync, "_is_empty", lambda _record: False)
    monkeypatch.setattr(sync, "is_complete", lambda _path: True)
    monkeypatch.setattr(sys, "executable", str(_client(tmp_path / "python")))
    (result,) = sync.sync(home, [str(tmp_path / "theirs")], lambda: None, again=True)  # type: ignore[arg-type,return-value]
    assert not (tmp_path / "stolen").exists()
    assert result.state == "synced"
    assert f"the Python that it names, {evil}, was not run: others can write" in result.in_words()


def test_a_client_is_not_started_in_the_folder_where_the_command_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There `python -m wandb` would run a `wandb.py` of whoever made that folder."""
    record = Record(Path("offline-run-1-r1"), "r1", None, None)
    monkeypatch.chdir(tmp_path)
    record.folder.mkdir()
    (tmp_path / "wandb_of_others.py").write_text(f"open({str(tmp_path / 'has_run')!r}, 'w')\n")
    theirs = [sys.executable, "-m", "wandb_of_others"]
    ours = [str(_client(tmp_path / "python"))]
    monkeypatch.setattr(sync, "_clients", lambda _record: [theirs, ours])
    monkeypatch.setattr(sync, "read_discovery", lambda _home: DISCOVERY)
    assert sync.sync_record(Home(tmp_path / "state"), record, "key") is None
    assert record.is_synced
    assert not (tmp_path / "has_run").exists()


def test_a_python_that_a_command_names_from_its_folder_is_noted_with_its_whole_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    monkeypatch.chdir(tmp_path)
    noted = find_interpreter(["./bin/python", "train.py"], os.environ)
    assert noted == str(tmp_path / "bin" / "python")


def _client(path: Path) -> Path:
    """Marks the folder that it is given as sent."""
    path.write_text('#!/bin/sh\nfor folder; do :; done\ntouch "$folder/run-r1.wandb.synced"\n')
    path.chmod(0o755)
    return path
