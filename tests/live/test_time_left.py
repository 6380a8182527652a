"""How long a run will still take is told while it runs: on its console, and in the tracker."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from runyard.home import Home
from tests.live.sweeping import api_of
from tests.node.terminals import PATIENCE, until

pytestmark = pytest.mark.live

# A tenth of a second a step, until it is let go.
PROGRAM = """\
import os, time, wandb
from runyard import train
with wandb.init(id="slow"):
    for step in train.steps(0, 3000, show=True):
        time.sleep(0 if os.path.exists("go") else 0.1)
"""


def test_the_time_left_is_printed_and_logged_while_the_run_goes_on(
    state_folder: Home, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    with subprocess.Popen(
        [sys.executable, "-m", "runyard", "run", "--", sys.executable, "train.py"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as run:  # fmt: skip
        assert run.stdout is not None
        try:
            printed = next(line for line in run.stdout if re.search(r"about .+ left", line))
            assert re.search(r"step \d+ of 3000, \d+ %, about .+ left", printed)

            def logged() -> bool:
                summary = api_of(state_folder).run("slow")["summary"]
                step, left = summary.get("progress/step"), summary.get("progress/seconds_left")
                # At its pace of ten steps a second, or slower on a busy machine.
                return bool(step and left) and 0.09 * (3000 - step) < left  # type: ignore[operator]

            until(logged, "an estimate in the summary")
            assert run.poll() is None
            assert api_of(state_folder).run("slow")["state"] == "running"
        finally:
            (tmp_path / "go").touch()
            run.stdout.read()
            assert run.wait(PATIENCE) == 0
    assert api_of(state_folder).run("slow")["summary"]["progress/seconds_left"] == 0
