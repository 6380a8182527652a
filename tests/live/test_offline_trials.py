"""A sweep whose programs may not log to the server: they record, and it comes in at the end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from runyard.home import Home
from tests.conftest import RunRunyard
from tests.live.programs import curves
from tests.live.sweeping import api_of, write_sweep

pytestmark = pytest.mark.live

LOGS = """\
import os, wandb
assert os.environ["WANDB_MODE"] == "offline"
run = wandb.init()
for step in range(5):
    run.log({"value": step * run.config.x})
run.finish()
"""


def test_what_trials_record_is_brought_in_at_the_agents_end(
    runyard: RunRunyard, state_folder: Home, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    command = [sys.executable, "${program}"]
    file = write_sweep(folder, LOGS, command=command, parameters={"x": {"values": [2]}})
    made = json.loads(runyard("sweep", "--no-run", "--json", str(file), cwd=folder).stdout)
    job = folder / "job.json"
    job.write_text(json.dumps({"sweep": made["key"], "folder": str(folder), "offline": True}))
    done = subprocess.run(
        [sys.executable, "-m", "runyard.node.agent", "--job", str(job)],
        capture_output=True, text=True, check=False, timeout=90,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (trial,) = api_of(state_folder).sweeps.trials(made["key"])
    assert trial["state"] == "finished"
    assert curves(state_folder, trial["id"])["value"]["values"] == [0, 2, 4, 6, 8]
    assert runyard("sync").stdout == "nothing to bring in\n"
