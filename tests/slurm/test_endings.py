"""Seven ways in which a job on two nodes ends: results come back, and no node has anything left.

All jobs are sent at once, and each test looks at how its own one ends. `RUNYARD_LONG_JOBS=1` has
Slurm call a node dead.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.node.terminals import until
from tests.slurm.cluster import FINAL_STATES, SlurmCluster
from tests.slurm.test_on_the_nodes import WRITES
from tests.slurm.yard import Yard, batch_shells, open_yard

pytestmark = pytest.mark.slurm

LONG = os.environ.get("RUNYARD_LONG_JOBS") == "1"
ENDINGS = ["success", "failure", "warning", "limit", "cancel", "kill", "node"]
SECONDS = 120.0
# What agents ask when their job ends; all other questions are answered.
DEAF = """\
#!/bin/sh
case "$*" in *PreemptTime*) exit 1 ;; esac
exec {squeue} "$@"
"""


class Jobs:
    """One job for each ending, and where their folders are."""

    def __init__(self, yard: Yard, disk: Path) -> None:
        self.yard, self.disk = yard, disk
        self.environ = {"TMPDIR": str(disk)}
        self.told = {how: self.send(how) for how in ENDINGS}

    def send(self, how: str, *words: str) -> dict[str, list[dict[str, str]]]:
        does = {"success": "", "failure": "fail", "limit": "stay"}.get(how, "wait")
        # Slurm looks at time limits every 30 s, and warns up to 30 s before the end. With a shorter
        # grace, the agent would then end the program before Slurm does.
        grace = "60s" if how == "limit" else "4s"
        done = self.yard.type(
            "submit", "--json", "--grace", grace, "--distributed", "srun", "--nodes", "2",
            "--tasks-per-node", "1", "--memory", "100M", *words, "--data", "data",
            "--results", "out", "--", "python", "writes.py", does,
            env=self.environ,
        )  # fmt: skip
        told: dict[str, list[dict[str, str]]] = json.loads(done.stdout)
        return told

    def number(self, how: str) -> str:
        return self.told[how]["jobs"][0]["job_id"]

    def folders(self, how: str) -> list[Path]:
        return list(self.disk.glob(f"runyard-{os.getuid()}/{self.number(how)}-*"))

    def begin(self, how: str) -> None:
        """Wait until both ranks of it wait; both nodes have their folder then."""
        until(lambda: self.logs(how).count("read 20 in") == 2, lambda: self.logs(how))
        assert len(self.folders(how)) == 2

    def logs(self, how: str) -> str:
        return self.yard.logs(self.told[how])

    def processes(self, how: str) -> set[int]:
        """Everything that runs of it, on any node."""
        mark, found = f"SLURM_JOB_ID={self.number(how)}".encode(), set()
        for process in Path("/proc").glob("[0-9]*"):
            try:
                environ = (process / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if mark in environ and f"TMPDIR={self.disk}".encode() in environ:
                found.add(int(process.name))
        return found

    def check_end(self, how: str) -> None:
        """Wait for its end: no folder and no process is left, and both nodes' results are there."""
        self.yard.cluster.wait_for(self.number(how), FINAL_STATES, SECONDS)
        until(lambda: not self.folders(how), lambda: f"{self.folders(how)}\n{self.logs(how)}")
        until(lambda: not self.processes(how), lambda: str(self.processes(how)))
        results = self.yard.project.parent / "scratch" / "project" / "results"
        found = sorted(results.glob(f"{self.number(how)}-*/out/sum.txt"))
        assert [file.read_text() for file in found] == ["20", "20"], self.logs(how)


@pytest.fixture(scope="module")
def jobs(
    tmp_path_factory: pytest.TempPathFactory,
    module_environment: pytest.MonkeyPatch,
    slurm_cluster: SlurmCluster,
) -> Iterator[Jobs]:
    folder, disk = tmp_path_factory.mktemp("endings"), tmp_path_factory.mktemp("disk")
    with open_yard(folder, module_environment, slurm_cluster) as yard:
        # Agents do not hear of a changed limit.
        path = slurm_cluster.env["PATH"]
        squeue = shutil.which("squeue", path=path)
        yard.write("deaf/squeue", DEAF.format(squeue=squeue)).chmod(0o755)
        profile = {
            "storage": {"scratch": f"{folder}/scratch"},
            "script": {"path": [str(yard.project / "deaf")]},
        }
        yard.write("profiles/rig.yaml", json.dumps(profile))
        module_environment.setenv("RUNYARD_CLUSTERS", str(yard.project / "profiles"))
        module_environment.setenv("RUNYARD_CLUSTER", "rig")
        yard.write("writes.py", WRITES)
        data = folder / "scratch" / "project" / "data"
        data.mkdir(parents=True)
        for number in range(20):
            (data / f"{number} of ü.txt").write_text("x")
        yield Jobs(yard, disk)


def test_success(jobs: Jobs) -> None:
    jobs.check_end("success")


def test_failure(jobs: Jobs) -> None:
    jobs.check_end("failure")


def test_the_warning_before_the_time_limit(jobs: Jobs) -> None:
    jobs.begin("warning")
    jobs.yard.cluster.run("scancel", "--batch", "--signal=USR2", jobs.number("warning"))
    jobs.check_end("warning")


def test_time_limit(jobs: Jobs) -> None:
    """Slurm cuts the job where no agent expects it; programs stay until they are killed."""
    jobs.begin("limit")
    # Where the controller is slow, "now" is past when it hears of it, and it refuses what is past.
    change = ("scontrol", "update", f"JobId={jobs.number('limit')}", "EndTime=now+10")
    jobs.yard.cluster.run(*change)
    jobs.check_end("limit")
    assert jobs.yard.cluster.show_job(jobs.number("limit"))[0]["JobState"] == "TIMEOUT"


def test_cancel(jobs: Jobs) -> None:
    jobs.begin("cancel")
    jobs.yard.cluster.run("scancel", jobs.number("cancel"))
    jobs.check_end("cancel")


def test_kill(jobs: Jobs) -> None:
    jobs.begin("kill")
    (script,) = batch_shells(f"SLURM_JOB_ID={jobs.number('kill')}", f"TMPDIR={jobs.disk}")
    os.kill(script, signal.SIGKILL)
    jobs.check_end("kill")


def test_node_failure(jobs: Jobs) -> None:
    """Everything of the job dies at once, as with a machine that loses its power."""
    jobs.begin("node")
    cluster, number = jobs.yard.cluster, jobs.number("node")
    nodes = cluster.show_job(number)[0]["NodeList"]
    if LONG:
        cluster.run("scontrol", "update", f"NodeName={nodes}", "State=DOWN", "Reason=test")
    # Stopped first, all of them: none sees another one go.
    for blow in (signal.SIGSTOP, signal.SIGKILL):
        struck: set[int] = set()
        while left := jobs.processes("node") - struck:
            struck |= left
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, blow)
    if LONG:
        cluster.run("scancel", number)  # A job whose node failed is queued again.
        until(lambda: is_up(cluster, nodes), lambda: cluster.run("sinfo", "-lN").stdout)
    cluster.wait_for(number, FINAL_STATES, SECONDS)
    assert len(jobs.folders("node")) == 2  # Nobody was there to remove them.
    jobs.told["next"] = jobs.send("success", f"--sbatch=--nodelist={nodes}")
    jobs.check_end("next")
    assert jobs.folders("node") == []
    assert jobs.logs("next").count("removed what another job left") == 2


def is_up(cluster: SlurmCluster, nodes: str) -> bool:
    """Whether they take jobs again; tells Slurm to let them, which it refuses where they do."""
    cluster.run("scontrol", "update", f"NodeName={nodes}", "State=RESUME", check=False)
    return "down" not in cluster.run("sinfo", "-h", "-N", "-n", nodes, "-o", "%T").stdout
