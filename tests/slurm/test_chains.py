"""Work that is longer than a job: the next link goes on where the last one was cut off.

`RUNYARD_LONG_JOBS=1` cuts links by Slurm's time limit, whose grain is a minute; the short form
sends the signal that comes before it.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.slurm.cluster import FINAL_STATES, SlurmCluster
from tests.slurm.yard import Yard, open_yard

pytestmark = pytest.mark.slurm

LONG = os.environ.get("RUNYARD_LONG_JOBS") == "1"

# Ends when it has been cut off three times, and some steps later.
TRAINS = """\
import json, os, pathlib, signal, sys, time
import wandb
state = pathlib.Path(os.environ["RUNYARD_CHECKPOINT_DIR"]) / "state.json"
step, cuts = json.loads(state.read_text()) if state.exists() else (0, 0)
told = []
signal.signal(signal.SIGUSR2, lambda *_: told.append(1))
run = wandb.init()
last = step + 5 if cuts == 3 else 10_000
print("link", cuts, "from", step, flush=True)
while step < last:
    run.log({"loss": 1 / (step + 1)}, step=step)
    step += 1
    time.sleep(0.1)
    if told:
        aside = state.with_suffix(".new")
        aside.write_text(json.dumps((step, cuts + 1)))
        aside.rename(state)
        run.finish()
        sys.exit(75)
run.finish()
print("ended at", step, flush=True)
"""


@pytest.fixture(scope="module")
def yard(
    tmp_path_factory: pytest.TempPathFactory,
    module_environment: pytest.MonkeyPatch,
    slurm_cluster: SlurmCluster,
) -> Iterator[Yard]:
    with open_yard(tmp_path_factory.mktemp("chains"), module_environment, slurm_cluster) as opened:
        yield opened


def until(found: Callable[[], object], what: str, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def until_said(yard: Yard, said: dict[str, Any], words: str) -> None:
    until(lambda: words in yard.logs(said), words)


def test_a_run_of_four_links_is_as_an_uncut_one(yard: Yard) -> None:
    yard.write("trains.py", TRAINS)
    limit = ("--time", "1m", "--grace", "45s") if LONG else ("--time", "5m")
    said = yard.submit("submit", "--chain", "6", *limit, "--", "python", "trains.py")
    (job,) = said["jobs"]
    assert job["array"] == "1-6"
    for link in range(0 if LONG else 3):
        until_said(yard, said, f"link {link} from")
        # As Slurm does it before the time limit: to the batch shell, and through it to the agent.
        task = f"SLURM_ARRAY_TASK_ID={link + 1}"
        (script,) = yard.batch_shells(f"SLURM_ARRAY_JOB_ID={job['job_id']}", task)
        os.kill(script, signal.SIGUSR2)
    found = yard.ended(said["sweep"], 400 if LONG else 90)
    assert found["counts"]["finished"] == 1
    # What is left of the chain ends at once, and computes nothing again.
    yard.cluster.wait_for(job["job_id"], FINAL_STATES, 60)
    logs = yard.logs(said)
    starts = [int(one) for one in re.findall(r"link \d from (\d+)", logs)]
    (last,) = re.findall(r"ended at (\d+)", logs)
    assert (starts[0], len(starts)) == (0, 4), logs
    assert starts == sorted(set(starts))
    (trial,) = yard.api.sweeps.trials(found["key"])
    rows = list(yard.api.rows(yard.api.run(trial["id"])))
    assert [(row["_step"], row["loss"]) for row in rows] == [
        (step, 1 / (step + 1)) for step in range(int(last))
    ]


# Knows of nothing but its own file; written aside, then renamed.
OWN_STATE = """\
import os, pathlib, sys, time
(file,) = (pathlib.Path(word.partition("=")[2]) for word in sys.argv[1:])
step = int(file.read_text()) if file.exists() else 0
print("from", step, flush=True)
while step < 40:
    time.sleep(0.1)
    step += 1
    file.with_suffix(".new").write_text(str(step))
    file.with_suffix(".new").rename(file)
print("ended at", step, flush=True)
"""


def test_a_program_with_a_state_file_of_its_own(yard: Yard) -> None:
    yard.write("own.py", OWN_STATE)
    state = yard.project.parent / "state file"
    said = yard.submit("submit", "--chain", "4", "--", "python", "own.py", f"-statefile={state}")
    (job,) = said["jobs"]
    until(lambda: state.exists() and int(state.read_text()) > 3, "it has begun")
    yard.cluster.run("scancel", f"{job['job_id']}_1")  # As the time limit does, TERM and then KILL.
    found = yard.ended(said["sweep"])
    assert found["counts"]["finished"] == 1
    yard.cluster.wait_for(job["job_id"], FINAL_STATES, 60)
    first, second = (int(one) for one in re.findall(r"from (\d+)", yard.logs(said)))
    assert (first, second > 3) == (0, True)
    assert yard.logs(said).count("ended at 40") == 1
