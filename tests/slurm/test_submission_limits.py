"""What a cluster may lack or limit: room for more jobs, Slurm itself."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from runyard.home import Home
from tests.conftest import run_runyard
from tests.live.sweeping import with_python
from tests.slurm.config import ClusterSpec
from tests.slurm.plugin import MakeCluster
from tests.slurm.yard import Yard

pytestmark = pytest.mark.slurm

SMALL = ClusterSpec(nodes=2, cpus=4, gpus=2)


def project_of(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text(
        "import os; print('gpu', os.environ['CUDA_VISIBLE_DEVICES'])\n"
    )
    sweep = {"program": "train.py", "method": "grid", "parameters": {"lr": {"values": [1, 2, 3]}}}
    (folder / "sweep.yaml").write_text(json.dumps(sweep))
    return folder


@contextlib.contextmanager
def submitting(yard: Yard, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A command that is typed while other things happen."""
    path = f"{Path(sys.executable).parent}:{yard.cluster.env['PATH']}"
    process = subprocess.Popen(
        [sys.executable, "-m", "runyard", *words], cwd=yard.project, text=True,
        env={**os.environ, **yard.cluster.env, "PATH": path},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_what_a_limit_keeps_out_is_sent_when_there_is_room(
    state_folder: Home, make_slurm_cluster: MakeCluster, tmp_path: Path
) -> None:
    cluster = make_slurm_cluster(replace(SMALL, enforce=True))
    for words in (
        ("add", "account", "lab"),
        ("add", "user", "root", "account=lab"),
        ("modify", "user", "root", "set", "maxsubmitjobs=4"),
    ):
        cluster.run("sacctmgr", "--immediate", *words)
    yard = Yard(state_folder, cluster, project_of(tmp_path))
    yard.write("tasks.txt", "sleep 0.2\n" * 7)
    done = yard.type("farm", "tasks.txt", "--on", "slurm", "--trials-each", "1", "--json")
    said = json.loads(done.stdout)
    taken = sum(job["tasks"] for job in said["jobs"])
    assert taken <= 4
    assert said["held"] == 7 - taken
    assert "AssocMaxSubmitJobLimit" in done.stderr
    # Each agent takes one task, so all seven are needed. The jobs themselves send the rest.
    found = yard.ended(said["sweep"], seconds=180)
    assert found["counts"]["finished"] == 7
    jobs = yard.api.jobs.jobs(sweep=found["key"])
    assert sum(job["tasks"] for job in jobs) == 7
    assert not list((state_folder.path / "held").glob("*.json"))

    # Where nothing at all is let in, nothing is left behind.
    cluster.run("sacctmgr", "--immediate", "modify", "user", "root", "set", "maxsubmitjobs=0")
    refused = yard.type("farm", "tasks.txt", "--on", "slurm", check=False)
    assert refused.returncode == 1
    assert "takes no more jobs of yours now" in refused.stderr
    assert yard.api.sweeps.sweeps(limit=1)[0]["id"] == said["sweep"]

    # What an account or a QOS has in common is a matter of waiting as well.
    cluster.run("sacctmgr", "--immediate", "modify", "user", "root", "set", "maxsubmitjobs=-1")
    yard.write("tasks.txt", "sleep 0.2\n" * 5)
    for whose, limit in (
        (("account", "lab"), "AssocGrpSubmitJobsLimit"),
        (("qos", "normal"), "QOSGrpSubmitJobsLimit"),
    ):
        cluster.run("sacctmgr", "--immediate", "modify", *whose, "set", "grpsubmitjobs=3")
        more = ("--trials-each", "1", "--account", "lab", "--json")
        done = yard.type("farm", "tasks.txt", "--on", "slurm", *more)
        said = json.loads(done.stdout)
        assert limit in done.stderr
        assert said["held"] == 5 - sum(job["tasks"] for job in said["jobs"]) > 0
        assert yard.ended(said["sweep"], seconds=180)["counts"]["finished"] == 5
        cluster.run("sacctmgr", "--immediate", "modify", *whose, "set", "grpsubmitjobs=-1")


def test_a_slurm_that_knows_too_many_jobs_takes_one_later(
    state_folder: Home, make_slurm_cluster: MakeCluster, tmp_path: Path
) -> None:
    """Jobs of all users count. sbatch itself tries again for two minutes."""
    cluster = make_slurm_cluster(replace(SMALL, accounting=False, most_jobs=4))
    yard = Yard(state_folder, cluster, project_of(tmp_path))
    # Releases differ in whether there is room for the last of four.
    others = [cluster.submit("true", "--hold") for _ in range(3)]
    last = cluster.run(
        "timeout", "20", "sbatch", "--parsable", "--hold", "--wrap=true", check=False
    )
    if last.returncode == 0:
        others.append(last.stdout.strip())
    with submitting(yard, "submit", "--json", "--", "true") as typed:
        assert typed.stderr is not None
        # What else it says comes before.
        while "waiting for Slurm's `sbatch` to answer" not in (said := typed.stderr.readline()):
            assert said, "it ended before it said that it waits"
        cluster.run("scancel", *others)
        out, complaints = typed.communicate(timeout=300)
    assert typed.returncode == 0, complaints
    assert yard.ended(json.loads(out)["sweep"])["counts"]["finished"] == 1


def test_without_slurm_the_way_to_run_here_is_told(state_folder: Home, tmp_path: Path) -> None:
    empty = tmp_path / "bin"
    empty.mkdir()
    python = with_python()["PATH"].partition(":")[0]
    project = project_of(tmp_path)
    for words in (("sweep", "sweep.yaml", "--on", "slurm"), ("submit", "--", "python", "train.py")):
        done = run_runyard(*words, env={"PATH": f"{python}:{empty}"}, cwd=project)
        assert done.returncode == 1
        assert "there is no Slurm here" in done.stderr
        assert "on this machine `runyard run`, `sweep` and `farm` work without it" in done.stderr
    assert not state_folder.path.exists()
