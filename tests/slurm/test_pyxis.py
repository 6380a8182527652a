"""pyxis starts a program by an `srun` within the job's own: what the agent chose reaches it.

The real plugin cannot be had here. `srun` on the path is a stand-in: it takes pyxis' options, calls
the real srun within the real job, which sets its own numbers and GPUs, and has Charliecloud run the
command in the image with the folders and the working folder that pyxis was told.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from pathlib import Path

import pytest

from tests.live.small_image import host_mounts, make_image
from tests.node.terminals import until
from tests.packages import find_program
from tests.slurm.cluster import FINAL_STATES
from tests.slurm.test_ranks import MEETS
from tests.slurm.yard import Yard

pytestmark = pytest.mark.slurm

STAND_IN = """\
#!{python} -IS
import os, sys
own, container = ["{srun}"], dict()
words = sys.argv[1:]
while words and words[0].startswith("-"):
    name, _, value = words[0].partition("=")
    if "container" in name:
        container[name] = value
    else:
        own.append(words[0])
    words.pop(0)
if container:
    image = container["--container-image"]
    binds = [bind.split(":")[:2] for bind in container["--container-mounts"].split(",")]
    for _, inside in binds:
        os.makedirs(image + inside, exist_ok=True)
    words = ["/usr/bin/env", "USER=pyxis", "PATH=/usr/bin:/bin", "{ch_run}",
             "--cd=" + container["--container-workdir"],
             *("--bind=" + ":".join(bind) for bind in binds), image, "--", *words]
os.execv(own[0], [*own, *words])
"""
TELLS = """
names = ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_NTASKS", "SLURM_NNODES")
print("rank", rank, "has", *(os.environ[name] for name in names), open("/in-the-image").read(),
      [name for name in os.environ if "KEPT" in name], flush=True)
"""


@pytest.fixture(scope="module")
def image(module_yard: Yard, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_image(tmp_path_factory.mktemp("images") / "small")


@pytest.fixture(scope="module")
def yard(module_yard: Yard, image: Path) -> Yard:
    environment = {"kind": "pyxis", "image": str(image), "mounts": host_mounts()}
    module_yard.write("runyard.yaml", json.dumps({"environment": environment}))
    return module_yard


@pytest.fixture
def with_pyxis(yard: Yard, tmp_path: Path) -> dict[str, str]:
    """Variables in which srun has pyxis."""
    programs = tmp_path / "bin"
    programs.mkdir()
    real = {"srun": find_program("srun"), "ch_run": find_program("ch-run")}
    (programs / "srun").write_text(STAND_IN.format(python=sys.executable, **real))
    (programs / "srun").chmod(0o755)
    return {"PATH": f"{programs}:{Path(sys.executable).parent}:{yard.cluster.env['PATH']}"}


def test_each_program_has_the_gpu_that_the_agent_chose(
    yard: Yard, with_pyxis: dict[str, str]
) -> None:
    """The inner step has all four GPUs of its job."""
    shows = "echo gpu $CUDA_VISIBLE_DEVICES of $SLURM_JOB_GPUS in $(cat /in-the-image); sleep 2"
    yard.write("tasks.txt", f"sh -c '{shows}'\n" * 4)
    said = yard.submit(
        "farm", "tasks.txt", "--on", "slurm", "--agents", "1", "--gpus", "4", "--per-gpu", "1",
        env=with_pyxis,
    )  # fmt: skip
    assert yard.ended(said["sweep"])["counts"]["finished"] == 4, yard.logs(said)
    found = re.findall(r"gpu (\S+) of 0,1,2,3 in yes", yard.logs(said))
    assert sorted(found) == ["0", "1", "2", "3"], yard.logs(said)


def test_ranks_have_their_own_numbers(yard: Yard, with_pyxis: dict[str, str]) -> None:
    """The inner step has one task, with the number 0, on one node."""
    yard.write("tells.py", MEETS + TELLS)
    said = yard.submit(
        "submit", "--distributed", "srun", "--nodes", "2", "--tasks-per-node", "2", "--",
        sys.executable, "tells.py", env=with_pyxis,
    )  # fmt: skip
    yard.cluster.wait_for(said["jobs"][0]["job_id"], "COMPLETED", 180)
    found = re.findall(r"rank (\d) has ([\d ]+) yes \[\]", yard.logs(said))
    assert sorted(found) == [
        ("0", "0 0 0 4 2"), ("1", "1 1 0 4 2"), ("2", "2 0 1 4 2"), ("3", "3 1 1 4 2"),
    ], yard.logs(said)  # fmt: skip


SAVES = """\
import signal, sys, time
signal.signal(signal.SIGUSR2, lambda *_: sys.exit("saved" if sys.argv[1:] else 7))
print("listens", flush=True)
signal.raise_signal(signal.SIGUSR2) if not sys.argv[1:] else time.sleep(600)
"""


def test_signals_and_exit_codes_go_through_both(yard: Yard, with_pyxis: dict[str, str]) -> None:
    yard.write("saves.py", SAVES)
    program = ("submit", "--", sys.executable, "saves.py")
    fails, saves = (yard.submit(*program, *word, env=with_pyxis) for word in ((), ("--wait",)))
    job = saves["jobs"][0]["job_id"]
    until(lambda: "listens" in yard.logs(saves), lambda: yard.logs(saves), 180)
    (script,) = yard.batch_shells(f"SLURM_JOB_ID={job}")
    os.kill(script, signal.SIGUSR2)
    yard.cluster.wait_for(job, FINAL_STATES, 180)
    assert "\tsaved\n" in yard.logs(saves), yard.logs(saves)
    (record,) = yard.cluster.wait_for(fails["jobs"][0]["job_id"], FINAL_STATES, 180)
    assert record["ExitCode"] == "7:0", yard.logs(fails)
