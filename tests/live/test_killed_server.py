"""kill -9 at any moment of ingest: what is stored is what was logged, from the start, once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from runyard.client.api import Api
from runyard.client.discover import ensure_server
from runyard.home import Home
from tests.conftest import server_pids
from tests.live.programs import PYTHON, stock_client, write_program

pytestmark = pytest.mark.live

_MOMENTS = int(os.environ.get("RUNYARD_KILLS", "8"))
_RUNS = 6
_PROGRAM = """
import pathlib, sys, time, wandb
end, runs = pathlib.Path(sys.argv[1]), [
    wandb.init(project="kills", id=f"run{number}", reinit="create_new")
    for number in range(int(sys.argv[2]))
]
step = 0
while not end.exists():
    for run in runs:
        run.log({"value": step * step, "deep": {"half": step / 2}})
    step += 1
    time.sleep(0.1)
for run in runs:
    run.finish()
print(step)
"""
# Each run posts every second, out of step with the others, and after a failure soon again.
_BUSY = {
    "WANDB_X_FILE_STREAM_TRANSMIT_INTERVAL": "1",
    "WANDB_X_FILE_STREAM_RETRY_WAIT_MIN_SECONDS": "0.1",
    "WANDB_X_FILE_STREAM_RETRY_WAIT_MAX_SECONDS": "0.3",
}


def test_kill_9_at_random_moments_of_ingest(state_folder: Home, tmp_path: Path) -> None:
    """RUNYARD_KILLS says how many moments."""
    chance = random.Random(9)
    end = tmp_path / "end"
    client = subprocess.Popen(
        [PYTHON, write_program(tmp_path / "project", _PROGRAM), end, str(_RUNS)],
        cwd=tmp_path / "project",
        env={**os.environ, **stock_client(state_folder), **_BUSY},
        stdout=subprocess.PIPE,
        text=True,
    )
    stored = [0] * _RUNS
    try:
        for _ in range(_MOMENTS):
            _wait_for_more(state_folder, stored)
            time.sleep(chance.uniform(0.0, 1.0))
            for pid in server_pids(state_folder):
                os.kill(pid, signal.SIGKILL)
            # Whatever of a post was written when it came: all of its rows, or none.
            after = [len(rows) for rows in _exact_rows(ensure_server(state_folder).api)]
            assert all(now >= before for now, before in zip(after, stored, strict=True))
            stored = after
    finally:
        end.touch()
        said, _ = client.communicate(timeout=120)
    assert client.returncode == 0
    steps = int(said)
    assert [len(rows) for rows in _exact_rows(ensure_server(state_folder).api)] == [steps] * _RUNS
    assert state_folder.log.read_text().count(" serves ") == _MOMENTS + 1


def _exact_rows(api: Api) -> list[list[dict[str, object]]]:
    """Every stored row of each run: they are the first that it logged, each once, in order."""
    found = []
    for number in range(_RUNS):
        rows = list(api.rows(api.run(f"run{number}")))
        for place, row in enumerate(rows):
            assert (row["_row"], row["_step"]) == (place, place)
            assert (row["value"], row["deep"]) == (place * place, {"half": place / 2})
        found.append(rows)
    return found


def _wait_for_more(home: Home, stored: list[int]) -> None:
    """Until the client, which waits a while after each failure, has sent more."""
    api = ensure_server(home).api
    limit = time.monotonic() + 180
    while time.monotonic() < limit:
        steps = {run["id"]: run["steps"] for run in api.runs(project="kills")}
        if any(steps.get(f"run{number}", 0) > before for number, before in enumerate(stored)):
            return
        time.sleep(0.05)
    raise AssertionError(f"nothing more came than {stored}")
