"""Trials that outlast a job: those that save go on in the next, others are not begun for nothing.

What is known of a sweep's programs belongs to the sweep: every agent here is a new one.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from runyard.home import Home
from tests.conftest import RunRunyard
from tests.live.sweeping import sweep_json, trials_of, with_python, write_sweep

pytestmark = pytest.mark.live

LONG = 120.0
# Works for some seconds; saves ten times a second, or never.
PROGRAM = """\
import os, sys, time
from pathlib import Path
given = dict(word[2:].split("=") for word in sys.argv[1:])
state = Path(os.environ["RUNYARD_CHECKPOINT_DIR"]) / "state"
done = int(state.read_text()) if state.exists() else 0
while done < 10 * float(given["seconds"]):
    time.sleep(0.1)
    done += 1
    if given["saves"] == "1":
        state.with_name(".state").write_text(str(done))
        state.with_name(".state").rename(state)
print("ended at", done, flush=True)
"""


def sweep_of(folder: Path, *, saves: int, seconds: list[float]) -> Path:
    return write_sweep(
        folder,
        PROGRAM,
        parameters={"saves": {"value": saves}, "seconds": {"values": seconds}},
    )


def test_a_new_agent_knows_that_the_sweeps_programs_save(
    runyard: RunRunyard, state_folder: Home, tmp_path: Path
) -> None:
    file = sweep_of(tmp_path / "p", saves=1, seconds=[3.0, 3.1])
    ended = runyard("sweep", str(file), "--count", "1", env=with_python(), timeout=LONG)
    assert ended.returncode == 0, ended.stderr
    sweep = sweep_json(runyard)
    assert sweep["counts"]["finished"] == 1, ended.stderr
    said = ""
    for _ in range(20):
        if sweep["state"] != "running":
            break
        again = runyard("sweep", sweep["id"], "--time", "3s", env=with_python(), timeout=LONG)
        assert again.returncode == 0, again.stderr
        said += again.stderr
        sweep = sweep_json(runyard)
    assert (sweep["state"], sweep["counts"]["finished"]) == ("finished", 2), said
    assert trials_of(state_folder)[1]["attempts"] > 1, "it was to outlast the job"


def test_what_never_saved_is_not_begun_where_it_cannot_finish(
    runyard: RunRunyard, state_folder: Home, tmp_path: Path
) -> None:
    file = sweep_of(tmp_path / "p", saves=0, seconds=[3.0, 3.1])
    ended = runyard("sweep", str(file), "--count", "1", env=with_python(), timeout=LONG)
    assert ended.returncode == 0, ended.stderr
    sweep = sweep_json(runyard)
    refused = runyard("sweep", sweep["id"], "--time", "3s", env=with_python(), timeout=LONG)
    assert refused.returncode == 1, refused.stderr
    assert "its programs are too long for such jobs" in refused.stderr
    assert re.search(r"none finished in less than \d+ s, and none has saved", refused.stderr)
    assert len(trials_of(state_folder)) == 1, "nothing was begun"
    assert "too long for such jobs" in runyard("status", sweep["id"]).stdout

    # Whoever changes the program says so, and it is tried again.
    resumed = runyard("sweep", "--resume", sweep["id"])
    assert resumed.returncode == 0, resumed.stderr
    assert "too long for such jobs" not in runyard("status", sweep["id"]).stdout
    last = runyard("sweep", sweep["id"], "--time", "10m", env=with_python(), timeout=LONG)
    assert last.returncode == 0, last.stderr
    assert sweep_json(runyard)["counts"]["finished"] == 2
