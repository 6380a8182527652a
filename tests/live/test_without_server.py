"""A machine that cannot reach the server: the run is recorded there, and comes in later."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard.client.discover import ensure_server, stop_server
from runyard.client.owed import find_records, read_owed
from runyard.home import Home, read_discovery, write_discovery
from runyard.locks import FolderLock
from tests.conftest import RunRunyard
from tests.live.programs import LOG_STEPS, PYTHON, curves, list_runs, write_program

pytestmark = pytest.mark.live

PROGRAM = """
import sys, wandb
run = wandb.init(project="elsewhere", config={"lr": 0.5}, tags=["far"])
for step in range(30):
    run.log({"value": step * step})
print("hello from the node")
run.finish()
sys.exit(3)
"""


@pytest.fixture
def out_of_reach(state_folder: Home) -> Iterator[FolderLock]:
    """A server on another machine, listening on that machine only: as a node sees it."""
    ensure_server(state_folder)
    stop_server(state_folder)
    discovery = read_discovery(state_folder)
    assert discovery is not None
    write_discovery(
        state_folder, dataclasses.replace(discovery, hostname="login-node", running=True)
    )
    # The other machine's server holds the folder, which locks tell across the network.
    with FolderLock(state_folder.server_lock) as lock:
        assert lock.acquire()
        yield lock


def back(home: Home, lock: FolderLock) -> None:
    """From here on the server can be reached, or started, again."""
    lock.release()
    discovery = read_discovery(home)
    assert discovery is not None
    write_discovery(home, dataclasses.replace(discovery, running=False))


def wait_until_synced(home: Home) -> None:
    end = time.monotonic() + 180
    while any(not record.is_synced for record in find_records(home)):
        assert time.monotonic() < end, "it was not brought in"
        time.sleep(0.2)


def check_is_in(runyard: RunRunyard, home: Home) -> None:
    (run,) = list_runs(runyard)
    assert (run["state"], run["exit_code"]) == ("failed", 3)
    assert (run["project"], run["config"], run["tags"]) == ("elsewhere", {"lr": 0.5}, ["far"])
    assert curves(home, run["id"])["value"]["values"] == [step * step for step in range(30)]
    assert "hello from the node" in runyard("logs", run["id"]).stdout
    shown = json.loads(runyard("show", run["id"], "--json").stdout)
    assert [attempt["exit_code"] for attempt in shown["attempts"]] == [3]
    assert list(home.spool.iterdir()) == []


def test_a_run_out_of_reach_is_recorded_and_synced_once(
    runyard: RunRunyard, state_folder: Home, out_of_reach: FolderLock, tmp_path: Path
) -> None:
    program = write_program(tmp_path / "project", PROGRAM)
    ended = runyard("run", "--", PYTHON, str(program), cwd=program.parent)
    assert ended.returncode == 3
    assert "hello from the node" in ended.stdout
    assert "runs on login-node" in ended.stderr
    assert "brought in later" in ended.stderr
    (record,) = find_records(state_folder)
    assert record.folder.is_relative_to(state_folder.runs)
    assert not record.is_synced
    assert record.python == PYTHON
    note = read_owed(state_folder.runs / record.run)
    assert note is not None
    assert note.python is not None

    # From the node it cannot be synced either, and nothing is lost by trying.
    refused = runyard("sync")
    assert refused.returncode == 1
    assert "login-node" in refused.stderr

    back(state_folder, out_of_reach)
    synced = runyard("sync", "--json")
    assert synced.returncode == 0, synced.stderr
    assert [(one["run"], one["state"]) for one in json.loads(synced.stdout)] == [
        (record.run, "synced")
    ]
    check_is_in(runyard, state_folder)
    assert json.loads(runyard("sync", "--json").stdout) == []
    again = runyard("sync", "--again", record.run, "--json")
    assert again.returncode == 0, again.stderr
    check_is_in(runyard, state_folder)


def test_the_next_server_brings_it_in_by_itself(
    runyard: RunRunyard, state_folder: Home, out_of_reach: FolderLock, tmp_path: Path
) -> None:
    program = write_program(tmp_path / "project", PROGRAM)
    runyard("run", "-q", "--", PYTHON, str(program), cwd=program.parent)
    back(state_folder, out_of_reach)
    started = runyard("runs")
    assert "bringing in runs" in started.stderr
    wait_until_synced(state_folder)
    check_is_in(runyard, state_folder)


def test_it_is_brought_in_at_the_end_if_the_server_is_back(
    runyard: RunRunyard, state_folder: Home, out_of_reach: FolderLock, tmp_path: Path
) -> None:
    # The program itself gives the server back, in the middle of its run.
    program = write_program(
        tmp_path / "project",
        PROGRAM.replace('print("hello', 'import os; os.kill(int(sys.argv[1]), 9)\nprint("hello'),
    )
    out_of_reach.release()
    holder = hold_elsewhere(state_folder)
    ended = runyard("run", "--", PYTHON, str(program), str(holder.pid), cwd=program.parent)
    holder.wait()
    assert ended.returncode == 3
    assert "is in after all" in ended.stderr
    check_is_in(runyard, state_folder)


def hold_elsewhere(home: Home) -> subprocess.Popen[str]:
    """A process that holds the server's lock, as the server on the other machine does."""
    script = (
        "import fcntl, sys, time; file = open(sys.argv[1], 'r+'); "
        "fcntl.flock(file, fcntl.LOCK_EX); print('held', flush=True); time.sleep(600)"
    )
    holder = subprocess.Popen(
        [PYTHON, "-c", script, str(home.server_lock)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    holder.stdout.close()
    return holder


def test_a_shell_gets_words_that_record_on_disk(
    runyard: RunRunyard, state_folder: Home, out_of_reach: FolderLock, tmp_path: Path
) -> None:
    told = runyard("env", "--json")
    assert told.returncode == 0, told.stderr
    words = json.loads(told.stdout)
    assert words["WANDB_MODE"] == "offline"
    assert Path(words["WANDB_DIR"]).is_relative_to(state_folder.runs)
    assert "runyard sync" in told.stderr


def test_a_folder_of_a_wandb_client_is_taken_by_name(
    runyard: RunRunyard, state_folder: Home, tmp_path: Path
) -> None:
    program = write_program(tmp_path / "project", LOG_STEPS)
    subprocess.run(
        [PYTHON, str(program), "5", "100"],
        cwd=program.parent,
        env={**os.environ, "WANDB_MODE": "offline", "WANDB_PROJECT": "found"},
        check=True,
        capture_output=True,
    )
    done = runyard("sync", str(program.parent))
    assert done.returncode == 0, done.stdout + done.stderr
    (run,) = list_runs(runyard)
    assert (run["project"], run["steps"]) == ("found", 5)
    assert "nothing" in runyard("sync", "nowhere").stderr
