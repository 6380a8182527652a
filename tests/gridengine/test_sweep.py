"""A sweep in Grid Engine's jobs, cut off by their limits of time and gone on with in the next ones.

`launch/` writes job scripts for Slurm alone: here the script is what somebody would type, and the
header is `header_lines`'.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from runyard.client.discover import ensure_server
from runyard.home import Home
from runyard.schedulers.conformance import Bench
from runyard.schedulers.gridengine.header import header_lines
from runyard.schedulers.gridengine.scheduler import GridEngine
from runyard.schedulers.jobs import Batch
from runyard.schedulers.resources import Ruled
from tests.conftest import RunRunyard
from tests.live.sweeping import with_python
from tests.slurm.trainer import TRAINS, history, sweep_file, uncut

from .cluster import GridEngineCell
from .test_conformance import write_script

pytestmark = pytest.mark.slurm

TRIALS, STEPS, LANES, MOST_LINKS = 20, 20, 3, 12
LINK_SECONDS, SAVE_SECONDS = 20.0, 8.0


def test_twenty_trials_are_cut_off_by_time_and_all_of_them_end_as_if_they_were_not(
    gridengine_cell: GridEngineCell, state_folder: Home, runyard: RunRunyard, tmp_path: Path
) -> None:
    (tmp_path / "trains.py").write_text(TRAINS)
    (tmp_path / "sweep.json").write_text(
        sweep_file(list(range(1, TRIALS + 1)), steps=STEPS, pause=0.1)
    )
    made = runyard("sweep", "sweep.json", "--no-run", "--json", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    sweep = json.loads(made.stdout)["id"]
    environ = {
        **gridengine_cell.env,
        "PATH": f"{with_python()['PATH']}:{gridengine_cell.env['PATH']}",
    }
    bench = Bench(GridEngine(environ), write_script, tmp_path, seconds=120)
    api = ensure_server(state_folder).api
    links: list[str] = []
    while api.sweeps.find(sweep)["state"] == "running" and len(links) < MOST_LINKS:
        links.append(bench.send(_link(tmp_path, sweep, len(links))))
        bench.ends(links[-1])
    logs = "".join(file.read_text() for file in sorted(tmp_path.glob("link-*.log")))
    assert api.sweeps.find(sweep)["state"] == "finished", logs
    trials = api.sweeps.trials(api.sweeps.find(sweep)["key"])
    assert len(trials) == TRIALS
    for trial in trials:
        lr = int(trial["values"]["lr"])
        assert history(api, trial["id"]) == uncut(STEPS, lr), logs
    assert len(links) > 1
    assert "goes back (go-on)" in logs


def _link(folder: Path, sweep: str, number: int) -> Batch:
    """One job of the chain: an array whose tasks work on the sweep until their time is up."""
    ruled = Ruled(
        gpus=None, gpu_type=None, cpus=1, memory=None, time=LINK_SECONDS + 10, asks_time=True,
        partition=None, account=None, qos=None, options={},
    )  # fmt: skip
    lines = header_lines(
        "sweep",
        ruled,
        log=f"{folder}/link-{number}.$TASK_ID.log",
        folder=str(folder),
        tasks=LANES,
        notify=True,
    )
    words = f"{sys.executable} -m runyard sweep {sweep} -t {LINK_SECONDS:.0f}s"
    body = f"exec {words} --grace {SAVE_SECONDS:.0f}s"
    return Batch("sweep", "\n".join(["#!/bin/sh", *lines, body, ""]), f"{folder}\n{number}")
