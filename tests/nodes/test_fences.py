"""Control groups: GPUs of other jobs are fenced off, and the kernel ends who takes too much memory.

NVIDIA's library and the daemon of MPS are doubles; the groups, the devices and
CUDA_VISIBLE_DEVICES are real.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import wait_until
from tests.environments import skip_or_fail
from tests.live.podman import IMAGE, write_settings
from tests.live.small_image import host_mounts, make_folders
from tests.node.recorded_driver import compile_driver, write_mps
from tests.packages import require, search_path

from .config import has_control_groups
from .rig import Rig
from .yard import Yard, open_yard

pytestmark = pytest.mark.slurm

# Waits for the other two; says what it has been given, and which GPUs it can open.
LOOKS = """\
import errno, json, os, pathlib, sys, time
here = pathlib.Path.cwd()
(here / f"up-{sys.argv[1]}").touch()
while len(list(here.glob("up-*"))) < 3:
    time.sleep(0.05)
opened = []
for number in range(4):
    try:
        os.close(os.open(f"/dev/nvidia{number}", os.O_RDWR))
    except OSError as error:
        if error.errno != errno.ENXIO:
            assert error.errno == errno.EPERM, error
            continue
    opened.append(number)
log = os.environ.get("CUDA_MPS_LOG_DIRECTORY")
print("sees", json.dumps({
    "job": os.environ["SLURM_JOB_GPUS"], "opened": opened,
    "own": os.environ["CUDA_VISIBLE_DEVICES"],
    "mps": log and pathlib.Path(log, "gpus").read_text().strip(),
}), flush=True)
"""
# The first takes twice the job's memory; the other ends when it is let go.
EATS = """\
import pathlib, sys, time
if sys.argv[1] == "0":
    room = bytearray(b"x" * (1 << 30))
while not pathlib.Path(sys.argv[2]).exists():
    time.sleep(0.05)
"""


@pytest.fixture
def fenced(rig: Rig) -> Rig:
    if not has_control_groups():
        skip_or_fail("no control groups of version 1 that fence devices")
    return rig


BEHIND_A_FENCE = pytest.mark.parametrize(
    ("mps", "count", "names"),
    [("off", "usable", ["0", "1"]), ("on", "all", ["GPU-2", "GPU-3"])],
)


@BEHIND_A_FENCE
def test_programs_share_the_gpus_of_a_job_behind_a_fence(
    fenced: Rig, mps: str, count: str, names: list[str]
) -> None:
    assert_shared(fenced, f"fence-{mps}", mps, count, names)


@BEHIND_A_FENCE
def test_programs_in_podmans_containers_have_the_names_of_the_fence(
    fenced: Rig, mps: str, count: str, names: list[str]
) -> None:
    """An ordinary user's podman: its containers stay in the job's control group. Each is given all
    GPUs, by the list that NVIDIA's tools write."""
    programs = make_podman(fenced, f"podman-{mps}")
    image = {"kind": "podman", "image": IMAGE, "mounts": [*host_mounts(), str(fenced.home)]}
    assert_shared(fenced, f"fence-podman-{mps}", mps, count, names, image, programs)


def assert_shared(
    rig: Rig,
    name: str,
    mps: str,
    count: str,
    names: list[str],
    environment: dict[str, Any] | None = None,
    programs: str = "",
) -> None:
    """Three programs of one job on two of a node's four GPUs; another job has the other two."""
    settings = {
        "RUNYARD_NVML": str(rig.home / "driver" / "libnvidia-ml.so.1"),
        "FENCED_GPUS": "/dev",
        "FENCED_COUNT": count,
        "PATH": f"{programs}{rig.home}/driver:{Path(sys.executable).parent}:{search_path()}",
    }
    driver = rig.disk / "driver"
    driver.mkdir(exist_ok=True)
    compile_driver("fenced_nvml.c", driver)
    write_mps(driver)
    with open_yard(rig, name, settings) as yard:
        taken = ("--gres=gpu:2", "--nodelist=n1", "--wrap=sleep 600", "--output=/dev/null")
        rig.run("login", "sbatch", *taken)
        wait_until(lambda: rig.run("login", "squeue", "--noheader", "--states=running"), 60)
        if environment:
            yard.write("runyard.yaml", json.dumps({"environment": environment}))
        yard.write("looks.py", LOOKS)
        yard.write("tasks.txt", "".join(f"{sys.executable} looks.py {n}\n" for n in range(3)))
        job = ("--on", "slurm", "--agents", "1", "--gpus", "2", "--cpus", "3", "--memory", "1G")
        share = ("-j", "3", "--mps", mps, "--sbatch=--nodelist=n1", "--yes")
        yard.type("login", "farm", "tasks.txt", *job, *share)
        wait_until(lambda: yard.logs().count("sees {") == 3, 180)
        sights: list[dict[str, Any]] = [
            json.loads(text) for text in re.findall(r"sees (\{.*\})", yard.logs())
        ]
    assert sorted(sight["own"] for sight in sights) == [names[0], *names]
    daemon = "GPU-2,GPU-3" if mps == "on" else None
    for sight in sights:
        assert (sight["job"], sight["opened"], sight["mps"]) == ("2,3", [2, 3], daemon)


def make_podman(rig: Rig, name: str) -> str:
    """podman on n1 with an image, and the list of its GPUs; what to put before PATH.

    It runs in a user namespace, as podman itself makes one for whoever is not root.
    """
    require("podman", "runc")
    folder, disk = rig.home / name, rig.disk / name
    (disk / "bin").mkdir(parents=True)
    own = write_settings(disk, Path("/var/tmp") / name)
    names = {key: str(folder / Path(path).name) for key, path in own.items()}
    variables = " ".join(f"{key}={path}" for key, path in names.items())
    (disk / "bin" / "podman").write_text(
        "#!/bin/sh\nexec unshare --user --map-root-user --mount env "
        "_CONTAINERS_USERNS_CONFIGURED=done _CONTAINERS_ROOTLESS_UID=1000 "
        f'_CONTAINERS_ROOTLESS_GID=1000 XDG_RUNTIME_DIR=/run {variables} /usr/bin/podman "$@"\n'
    )
    (disk / "bin" / "podman").chmod(0o755)
    gpus = [{"path": f"/dev/nvidia{number}"} for number in range(rig.plan.gpus)]
    listed = {"name": "all", "containerEdits": {"deviceNodes": gpus}}
    cdi = {"cdiVersion": "0.3.0", "kind": "nvidia.com/gpu", "devices": [listed]}
    (disk / "nvidia.json").write_text(json.dumps(cdi))
    tar = ["tar", "-C", str(make_folders(disk / "small")), "-cf", str(disk / "small.tar"), "."]
    subprocess.run(tar, check=True)
    rig.run("n1", "sh", "-c", f"mkdir -p /etc/cdi && cp {folder}/nvidia.json /etc/cdi/")
    rig.run("n1", f"{folder}/bin/podman", "import", f"{folder}/small.tar", IMAGE)
    return f"{folder}/bin:"


def test_a_program_that_takes_too_much_memory_is_told_and_the_other_goes_on(
    fenced: Rig, yard: Yard
) -> None:
    yard.write("eats.py", EATS)
    go = yard.folder / "project" / "go"
    yard.write("tasks.txt", "".join(f"python eats.py {task} {go}\n" for task in range(2)))
    job = ("--on", "slurm", "--agents", "1", "--cpus", "2", "-j", "2", "--memory", "512M")
    yard.type("login", "farm", "tasks.txt", *job, "--yes")

    def states() -> dict[str, list[str | None]]:
        return {run["state"]: run["causes"] for run in yard.runs("login")}

    wait_until(lambda: states() == {"crashed": ["memory"] * 2, "running": [None]}, 180)
    yard.write(go.name, "")
    wait_until(lambda: states().keys() == {"crashed", "finished"}, 180)
