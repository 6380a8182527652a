"""Ranks of two nodes in real containers: Charliecloud, Apptainer and podman, data straight from
scratch."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from tests.live.apptainer import make_apptainer, make_sif
from tests.live.podman import IMAGE, open_podman
from tests.live.small_image import host_mounts, make_image
from tests.slurm.test_ranks import MEETS
from tests.slurm.yard import Yard

pytestmark = pytest.mark.slurm

READS = (
    MEETS
    + """
inside, outside = open("/in-the-image").read(), os.environ.get("OF_THE_HOST")
places = "/data", os.environ["scratch_dir"] + "/data"
words = [open(f"{place}/words.txt").read() for place in places]
names = ("WORLD_RANK", "NODE_RANK", "JAX_COORDINATOR_ADDRESS")
print("rank", rank, "in the image:", inside, "of the host:", outside, "data:",
      *words, "set:", all(one in os.environ for one in names), flush=True)
"""
)


@pytest.fixture(scope="module")
def yard(module_environment: pytest.MonkeyPatch, module_yard: Yard) -> Yard:
    module_environment.setenv("OF_THE_HOST", "stays outside")
    scratch = module_yard.project.parent / "scratch"
    module_yard.write("profiles/rig.yaml", json.dumps({"storage": {"scratch": str(scratch)}}))
    module_environment.setenv("RUNYARD_CLUSTERS", str(module_yard.project / "profiles"))
    module_environment.setenv("RUNYARD_CLUSTER", "rig")
    (scratch / "project" / "data").mkdir(parents=True)
    (scratch / "project" / "data" / "words.txt").write_text("from scratch")
    return module_yard


@pytest.mark.parametrize("kind", ["charliecloud", "apptainer"])
def test_ranks_in_containers_of_two_nodes_meet_and_read_data_on_scratch(
    yard: Yard, tmp_path: Path, kind: str
) -> None:
    path = f"{Path(sys.executable).parent}:{yard.cluster.env['PATH']}"
    if kind == "apptainer":
        programs = make_apptainer(tmp_path / "bin")
        image, path = make_sif(tmp_path / "small.sif", programs), f"{programs}:{path}"
    else:
        image = make_image(tmp_path / "small")
    ranks_meet(yard, kind, str(image), {"PATH": path})


def test_ranks_in_podmans_containers_meet(yard: Yard, tmp_path: Path) -> None:
    """Each rank is a container of its own, which a process apart starts."""
    with open_podman(tmp_path) as podman:
        ranks_meet(yard, "podman", IMAGE, podman.environ)
        assert podman.containers() == []


def ranks_meet(yard: Yard, kind: str, image: str, environ: dict[str, str]) -> None:
    mounts = [f"{yard.project.parent}/scratch/project/data:/data", *host_mounts()]
    environment = {"kind": kind, "image": image, "mounts": mounts}
    yard.write("runyard.yaml", json.dumps({"environment": environment}))
    yard.write("reads.py", READS)
    said = yard.submit(
        "submit", "--distributed", "srun", "--nodes", "2", "--tasks-per-node", "2", "--",
        sys.executable, "reads.py", env=environ,
    )  # fmt: skip
    yard.cluster.wait_for(said["jobs"][0]["job_id"], "COMPLETED", 180)
    logs = yard.logs(said)
    found = re.findall(r"rank (\d) of 4 on (n\d) .* total 10", logs)
    assert sorted(rank for rank, _ in found) == ["0", "1", "2", "3"], logs
    assert len({node for _, node in found}) == 2
    told = "in the image: yes of the host: None data: from scratch from scratch set: True"
    assert sorted(re.findall(rf"rank (\d) {told}", logs)) == ["0", "1", "2", "3"], logs
    # Mounted, and not copied: nobody asked for staging.
    assert not (Path(yard.project.parent) / "scratch" / "project" / ".runyard").exists()
