"""`hydra/launcher=runyard` on a real cluster: Hydra's own examples, and a job that is cut off."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.hydra.examples import EXAMPLES, run_example
from tests.hydra.hydra_environment import run_hydra
from tests.slurm.yard import Yard

pytestmark = pytest.mark.slurm

# Its first attempt is cut off by the time limit; the second finds what the first has written.
LONG_PROGRAM = """\
import os, time
from pathlib import Path
import hydra
from hydra.core.hydra_config import HydraConfig

@hydra.main(version_base="1.3", config_path=None)
def train(config):
    folder = Path(HydraConfig.get().runtime.output_dir)
    with open(folder / "jobs", "a") as file:
        file.write(os.environ["SLURM_JOB_ID"] + "\\n")
    if len((folder / "jobs").read_text().split()) == 1:
        time.sleep(600)
    return config.lr, os.getcwd()

if __name__ == "__main__":
    train()
"""


def on_slurm(yard: Yard) -> dict[str, str]:
    slurm = yard.cluster.env
    return {"SLURM_CONF": slurm["SLURM_CONF"], "PATH": slurm["PATH"]}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs_unmodified(name: str, module_yard: Yard, tmp_path: Path) -> None:
    example = EXAMPLES[name]
    printed = run_example(example, tmp_path, "hydra.launcher.time=5m", **on_slurm(module_yard))
    api = module_yard.api
    sweeps = [api.sweeps.find(word) for word in re.findall(r"runyard status (\S+)", printed)]
    runs = [run for sweep in sweeps for run in api.runs(sweep=sweep["key"])]
    assert [run["state"] for run in runs] == ["finished"] * len(example.outputs)
    assert all(api.jobs.jobs(sweep=sweep["key"]) for sweep in sweeps)


def test_a_job_that_is_preempted_goes_on_in_its_folder(module_yard: Yard) -> None:
    yard = module_yard
    program = yard.project / "train.py"
    program.write_text(LONG_PROGRAM)
    done = run_hydra(
        program, "+lr=0.1,0.2", "hydra.sweep.dir=out", "hydra.launcher.time=1m",
        "hydra.launcher.chain=2", "+hydra.launcher.settings.checkpoints.grace=5s",
        folder=yard.project, **on_slurm(yard),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for number in (0, 1):
        jobs = (yard.project / "out" / str(number) / "jobs").read_text().split()
        assert len(jobs) == 2
        assert jobs[0] != jobs[1]


def test_jobs_that_were_ended_from_outside_are_failures(module_yard: Yard) -> None:
    yard = module_yard
    program = yard.project / "endless.py"
    cancel = "os.system('scancel $SLURM_ARRAY_JOB_ID'); time.sleep(600)"
    program.write_text(LONG_PROGRAM.replace("time.sleep(600)", cancel))
    done = run_hydra(program, "+lr=1,2", "hydra.launcher.time=5m", folder=yard.project,
                     **on_slurm(yard))  # fmt: skip
    assert done.returncode == 1
    assert "is not done, and nobody works on it any more" in done.stderr
    assert "goes on" in done.stderr, "what to do next"
