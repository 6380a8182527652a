"""`delete` asks first and says what goes; `cancel` ends programs that know nothing of wandb."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from tests.conftest import RunRunyard
from tests.node.terminals import RUNYARD, Terminal

pytestmark = pytest.mark.live


def _runs(runyard: RunRunyard) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(runyard("runs", "--json").stdout)
    return found


def test_delete(runyard: RunRunyard) -> None:
    for run in ("abc1", "abc2", "xyz3"):
        runyard("run", "-q", "-P", "one", "-e", f"name-{run}", "true", env={"WANDB_RUN_ID": run})

    unasked = runyard("delete", "abc1")
    assert unasked.returncode == 2
    assert "add --yes" in unasked.stderr
    unknown = runyard("delete", "--yes", "abc1", "never")
    assert unknown.returncode != 0
    assert "there is no run 'never'" in unknown.stderr
    assert len(_runs(runyard)) == 3

    deleted = runyard("delete", "--yes", "one/abc1", "abc2", "abc2")
    assert (deleted.returncode, deleted.stdout) == (0, "")
    assert deleted.stderr.count("deleted one/") == 2
    assert "one/abc1 (name-abc1, finished): 0 steps, 0 files (0 bytes)" in deleted.stderr
    assert [run["id"] for run in _runs(runyard)] == ["xyz3"]

    with Terminal([*RUNYARD, "delete", "xyz3"]) as terminal:
        terminal.expect(r"put this run into the trash\? \[y/N\]")
        terminal.type("n\n")
        terminal.expect("nothing was deleted")
    assert len(_runs(runyard)) == 1
    with Terminal([*RUNYARD, "delete", "xyz3"]) as terminal:
        terminal.expect(r"\[y/N\]")
        terminal.type("y\n")
        terminal.expect("deleted one/xyz3")
    assert _runs(runyard) == []

    # The trash keeps them; a run can be put back, or go for good.
    trash = json.loads(runyard("delete", "--trash", "--json").stdout)
    assert [run["id"] for run in trash] == ["xyz3", "abc2", "abc1"]
    assert all(29 * 86400 < run["gone_at"] - time.time() < 30 * 86400 for run in trash)
    restored = runyard("delete", "--restore", "name-abc1", "one/abc2")
    assert (restored.returncode, restored.stderr.count("restored one/")) == (0, 2)
    assert {run["id"] for run in _runs(runyard)} == {"abc1", "abc2"}
    assert "trash" in runyard("delete", "--restore", "never").stderr
    assert runyard("delete", "--yes", "--now", "abc1").returncode == 0
    assert [run["id"] for run in _runs(runyard)] == ["abc2"]
    assert "deleted 1 runs for good" in runyard("delete", "--empty", "--yes").stderr
    assert json.loads(runyard("delete", "--trash", "--json").stdout) == []


def test_cancel_ends_a_program_without_wandb(runyard: RunRunyard) -> None:
    assert runyard("server", "start").returncode == 0
    program = "import time\nfor _ in range(600):\n    print('on', flush=True)\n    time.sleep(0.1)"
    started = subprocess.Popen(
        [*RUNYARD, "run", "-e", "long", "--", sys.executable, "-c", program],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        end = time.monotonic() + 180
        while not any(run["state"] == "running" for run in _runs(runyard)):
            assert time.monotonic() < end
            time.sleep(0.1)
        asked = json.loads(runyard("cancel", "long", "--json").stdout)
        assert asked["stop_asked"] is True
        assert started.wait(180) == -signal.SIGTERM
    finally:
        started.kill()
    assert _runs(runyard)[0]["state"] == "killed"
