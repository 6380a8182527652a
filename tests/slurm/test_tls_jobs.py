"""Jobs whose server speaks TLS: agents and programs, straight and through the job's first node."""

from __future__ import annotations

import pytest

from runyard.home import read_discovery
from tests.live.programs import curves
from tests.slurm.yard import Yard

pytestmark = pytest.mark.slurm

TRAIN = """\
import os, wandb
run = wandb.init()
run.summary["to"] = os.environ["WANDB_BASE_URL"]
for step in range(3):
    run.log({"value": step})
run.finish()
"""
SWEEP = """\
program: train.py
method: grid
parameters: {x: {values: [1, 2]}}
command: [python, "${program}"]
"""


@pytest.fixture(scope="module")
def yard(quoted_yard: Yard) -> Yard:
    quoted_yard.write("train.py", TRAIN)
    quoted_yard.write("sweep.yaml", SWEEP)
    quoted_yard.type("server", "start", "--tls")
    return quoted_yard


@pytest.mark.parametrize("words", [(), ("--form", "nodes", "--agents", "2")])
def test_trials_are_claimed_and_logged(yard: Yard, words: tuple[str, ...]) -> None:
    if words:
        yard.write("runyard.yaml", "tracking: {mode: relay}\n")
    said = yard.submit("sweep", "sweep.yaml", "--on", "slurm", *words)
    assert yard.ended(said["sweep"])["counts"]["finished"] == 2, yard.logs(said)
    discovery = read_discovery(yard.home)
    assert discovery is not None
    assert discovery.url.startswith("https://")
    for trial in yard.api.sweeps.trials(yard.api.sweeps.find(said["sweep"])["key"]):
        assert curves(yard.home, trial["id"])["value"]["values"] == [0, 1, 2]
        # By the node's door, through which TLS goes as it is.
        assert str(yard.api.run(trial["id"])["summary"]["to"]).startswith("https://127.0.0.1:")
