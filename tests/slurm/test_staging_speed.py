"""Ten thousand small files and a large one to two nodes, against `cp -r`, on the same nodes.

Scratch is a real network file system (sshfs) on which a round trip takes a millisecond: on one
machine's own disk there is no server to wait for, which is what `cp -r` does on a cluster.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.staging import make, mounted

from tests.packages import require
from tests.slurm.cluster import SlurmCluster
from tests.slurm.yard import Yard, open_yard

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(
        os.environ.get("RUNYARD_LONG_JOBS") != "1",
        reason="RUNYARD_LONG_JOBS=1: `cp -r` takes its time; benchmarks/staging.py measures more",
    ),
]

FILES = 10_000
COUNTS = """\
import os, pathlib, time
local = pathlib.Path(os.environ["SLURM_TMPDIR"])
count = sum(one.is_file() for one in (local / "small").rglob("*"))
size = sum(one.stat().st_size for one in local.glob("large"))
print("found", count, "and", size, "at", time.time(), flush=True)
"""
COPIES = """\
import os, subprocess, sys, tempfile, time
began = time.time()
with tempfile.TemporaryDirectory() as local:
    subprocess.run(["cp", "-r", sys.argv[1], local], check=True)
    print("copied in", time.time() - began, flush=True)
"""


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Path]:
    require("sshfs", "openssh-sftp-server")
    source, place = tmp_path / "source" / "project", tmp_path / "scratch"
    make(source, FILES)
    place.mkdir()
    with mounted(source.parent, place, 1.0) as mount:
        yield mount


def test_staging_is_three_times_as_fast_as_copying(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slurm_cluster: SlurmCluster, scratch: Path
) -> None:
    with open_yard(tmp_path / "yard", monkeypatch, slurm_cluster) as yard:
        yard.write("profiles/rig.yaml", json.dumps({"storage": {"scratch": str(scratch)}}))
        monkeypatch.setenv("RUNYARD_CLUSTERS", str(yard.project / "profiles"))
        monkeypatch.setenv("RUNYARD_CLUSTER", "rig")
        yard.write("counts.py", COUNTS)
        yard.write("copies.py", COPIES)
        nodes = ("--distributed", "srun", "--nodes", "2", "--tasks-per-node", "1")
        copied = copying(yard, nodes, scratch)
        first, later = staging(yard, nodes), staging(yard, nodes)
        print(f"cp -r {copied:.1f} s; staging: first job {first:.1f} s, later jobs {later:.1f} s")
        large = staging(yard, nodes, "--data", "large")
        print(f"with a large file, too, not packed before: {large:.1f} s")
        assert copied / first >= 3
        assert copied / later >= 3


def copying(yard: Yard, nodes: tuple[str, ...], scratch: Path) -> float:
    """Seconds until both nodes have the small files, by `cp -r` on each."""
    words = ("python", "copies.py", str(scratch / "project" / "small"))
    said = yard.submit("submit", *nodes, "--", *words)
    yard.cluster.wait_for(said["jobs"][0]["job_id"], "COMPLETED", 600)
    times = re.findall(r"copied in (\S+)", yard.logs(said))
    assert len(times) == 2
    return max(map(float, times))


def staging(yard: Yard, nodes: tuple[str, ...], *more: str) -> float:
    """Seconds from the start of the job until a program on each node has all its data."""
    said = yard.submit("submit", *nodes, "--data", "small", *more, "--", "python", "counts.py")
    (job,) = yard.cluster.wait_for(said["jobs"][0]["job_id"], "COMPLETED", 600)
    found = re.findall(r"found (\d+) and (\d+) at (\S+)", yard.logs(said))
    size = 256 << 20 if more else 0
    assert [(one[0], one[1]) for one in found] == [(str(FILES), str(size))] * 2
    began = yard.cluster.run("date", "-d", job["StartTime"], "+%s").stdout
    return max(float(one[2]) for one in found) - float(began)
