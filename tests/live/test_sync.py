"""Offline runs and what crashes left, brought in by the stock client's own `wandb sync`."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from wandb.proto.wandb_internal_pb2 import Record  # type: ignore[attr-defined]  # Made on import.

from runyard.client.client_log import read_log
from runyard.client.discover import ensure_server
from runyard.home import Home
from tests.live.programs import PYTHON, curves, stock_client, write_program

pytestmark = pytest.mark.live

SEGMENTS = """
import time, wandb
for first in (0, 4, 8):
    run = wandb.init(id="segments", mode="offline", dir=f"part{first}", config={"first": first})
    for step in range(first, first + 4):
        print("step", step)
        run.log({"v": step * 10}, step=step)
    run.summary[f"of{first}"] = first
    run.finish()
    time.sleep(1.1)
"""
KILLED = """
import os, signal, sys, time, wandb
run = wandb.init(id="killed", dir="killed")
for step in range(400):
    run.log({"v": step, "text": "x" * 400})
    if step == 200:
        time.sleep(3)
os.kill(os.getpid(), signal.SIGKILL)
"""


@dataclass(frozen=True)
class Yard:
    home: Home
    folder: Path
    environment: dict[str, str]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [PYTHON, *words], cwd=self.folder, env=self.environment, timeout=180,
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    def sync(self, *parts: str) -> None:
        """`wandb sync` of the runs in these folders, also of those that it has synced before."""
        logs = [str(log) for part in parts for log in self.folder.glob(f"{part}/wandb/*run-*-*")]
        assert logs
        done = self.run("-m", "wandb", "sync", "--no-skip-synced", "--no-skip-online", *logs)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def yard(module_home: Home, tmp_path_factory: pytest.TempPathFactory) -> Yard:
    folder = tmp_path_factory.mktemp("sync")
    for part in ("part0", "part4", "part8", "killed"):
        (folder / part).mkdir()
    environment = {**os.environ, **stock_client(module_home), "WANDB_PROJECT": "birds"}
    return Yard(module_home, folder, environment)


def test_segments_of_a_run_in_any_order(yard: Yard) -> None:
    program = write_program(yard.folder, SEGMENTS)
    done = yard.run(program.name)
    assert done.returncode == 0, done.stderr
    api = ensure_server(yard.home).api
    for number, part in enumerate(("part8", "part0", "part4", "part0"), 1):
        yard.sync(part)
        assert curves(yard.home, "segments")["v"]["count"] == min(number, 3) * 4
    series = curves(yard.home, "segments")["v"]
    assert series["steps"] == list(range(12))
    assert series["values"] == [step * 10 for step in range(12)]
    run = api.run("segments")
    assert (run["state"], run["steps"], run["config"]) == ("finished", 12, {"first": 8})
    assert {"of0": 0, "of4": 4, "of8": 8, "v": 110}.items() <= run["summary"].items()
    assert run["program"] != "wandb"
    text = api.console(run, 0)["text"]
    assert [line for line in text.split("\n") if line.startswith("step")] == [
        f"step {step}" for step in range(12)
    ]


def test_what_a_killed_run_left_fills_the_gap(yard: Yard) -> None:
    program = write_program(yard.folder, KILLED, "killed.py")
    yard.run(program.name)
    before = _settled(yard)
    (log,) = yard.folder.glob("killed/wandb/run-*-killed/run-killed.wandb")
    records = [Record.FromString(record) for record in read_log(log) if record is not None]
    written = sum(record.WhichOneof("record_type") == "history" for record in records)
    assert written > 200
    for _ in range(2):
        yard.sync("killed")
        steps = curves(yard.home, "killed")["v"]["steps"]
        # All that the client could write before it noticed; what had arrived stays.
        assert steps == list(range(max(before, written)))
    run = ensure_server(yard.home).api.run("killed")
    assert (run["steps"], run["archives"]) == (len(steps), [])


def _settled(yard: Yard) -> int:
    """How many steps had arrived."""
    count = -1
    while True:
        now = curves(yard.home, "killed").get("v")
        if now is not None and now["count"] == count:
            return count
        count = 0 if now is None else now["count"]
        time.sleep(0.5)
