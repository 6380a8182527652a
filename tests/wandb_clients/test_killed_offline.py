"""An offline run whose processes are killed with -9: what was whole on disk is on the server.

What was whole is counted by the client of 0.16, whose reader of logs is in Python: not by ours.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from runyard.actions.tidying import sync
from runyard.client.discover import ensure_server
from runyard.home import Home
from tests.environments import Missing, skip_or_fail
from tests.wandb_clients.environments import ensure_environment

pytestmark = pytest.mark.live

# 50 kills of each with RUNYARD_ALL_CUTS=1.
_LONG = bool(os.environ.get("RUNYARD_ALL_CUTS"))
_VERSIONS = ("0.31.0", "0.22.3", "0.16.6") if _LONG else ("0.31.0", "0.16.6")
_KILLS = 50 if _LONG else 1

PROGRAM = """
import sys, time, wandb
run = wandb.init(id=sys.argv[1], project="killed", mode="offline")
open("begun", "w").close()
for step in range(1_000_000):
    run.log({"v": step, "text": "x" * (step % 700)})
    time.sleep(0.0005)
"""
# A record's own number comes first, then what it is: history is field 2 of the client's protocol.
COUNT = """
import sys
from wandb.sdk.internal.datastore import DataStore
for path in sys.argv[1:]:
    log, rows = DataStore(), 0
    try:
        log.open_for_scan(path)
        while (data := log.scan_data()) is not None:
            if data[:1] == b"\\x08":
                data = data[1:].lstrip(bytes(range(0x80, 0x100)))[1:]
            rows += data[:1] == b"\\x12"
    except AssertionError:
        pass  # Cut off in the middle of a record.
    print(rows)
"""


@pytest.mark.parametrize("version", _VERSIONS)
def test_every_whole_record_of_a_killed_run_is_brought_in(
    module_home: Home, tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        python, reader = ensure_environment(version), ensure_environment("0.16.6")
    except Missing as missing:
        skip_or_fail(str(missing))
    # The client that wrote a log must do: most machines have no other one.
    monkeypatch.setattr(sync, "_clients", lambda _record: [[str(python), "-m", "wandb"]])
    chance = random.Random(f"{version} {time.time_ns() if _LONG else 0}")
    logs = {}
    for number in range(_KILLS):
        run = f"k{version.replace('.', '')}x{number}"
        folder = tmp_path / run
        folder.mkdir()
        after = chance.uniform(0, 3)
        # 0.16 names the port of its service before it listens there: a busy machine may refuse it.
        assert any(_run_and_kill(python, folder, run, after) for _ in range(5))
        (logs[run],) = folder.glob(f"wandb/offline-run-*/run-{run}.wandb")
    # Every log with one start of the reader: importing a client takes longer than reading.
    counts = subprocess.check_output([reader, "-c", COUNT, *logs.values()], text=True).split()
    for (run, log), count in zip(logs.items(), counts, strict=True):
        _bring_in(module_home, tmp_path / run, run, int(count))
        print(f"{run}: {log.stat().st_size} bytes, {count} rows", flush=True)


def _bring_in(home: Home, folder: Path, run: str, rows: int) -> None:
    (log,) = folder.glob(f"wandb/offline-run-*/run-{run}.wandb")
    # Whether its program lives nobody has noted: what was left alone for a while is over.
    os.utime(log, (log.stat().st_mtime - 3600,) * 2)
    (result,) = sync.sync(home, [str(folder)], lambda: ensure_server(home).api)
    assert result.said is None, (run, result.said)
    if result.state == "empty":
        assert rows == 0, run
        return
    assert result.state == "synced"
    stored = ensure_server(home).api.run(run)
    assert (stored["steps"], stored["state"]) == (rows, "failed"), run
    # And it is over: nothing of it is owed any more.
    assert list(sync.sync(home, [str(folder)], lambda: ensure_server(home).api)) == []


def _run_and_kill(python: Path, folder: Path, run: str, after: float) -> bool:
    """Kill the program and all that its client has started; false if it did not come to its run."""
    environment = {name: value for name, value in os.environ.items() if name[:6] != "WANDB_"}
    begun = folder / "begun"
    # No pipe: a service whose program could not start lives on, and would hold it open.
    with subprocess.Popen(
        [python, "-c", PROGRAM, run],
        cwd=folder,
        env={**environment, "WANDB_SILENT": "true"},
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        while not begun.exists() and process.poll() is None:
            time.sleep(0.02)
        time.sleep(after if begun.exists() else 0)
        # The client's service may lead a session of its own: whoever works in the folder.
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and _works_in(entry, folder):
                os.kill(int(entry.name), signal.SIGKILL)
    return begun.exists()


def _works_in(process: Path, folder: Path) -> bool:
    try:
        return (process / "cwd").resolve() == folder.resolve()
    except OSError:
        return False
