"""A site with trouble while a sweep is at work: nodes are drained, the controller is silent, and it
is started again. Nothing is lost, nothing runs twice, and commands say what is wrong.

`RUNYARD_LONG_JOBS=1` has the controller silent for two minutes. Elsewhere: the limits of a user
(test_submission_limits.py), of arrays (test_submission.py), reservations (test_by_hand.py) and
maintenances (test_chain_forms.py), nodes that die (test_interruptions.py).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.live.sweeping import with_python
from tests.node.terminals import until
from tests.slurm.cluster import FINAL_STATES, SlurmCluster
from tests.slurm.yard import Yard

pytestmark = pytest.mark.slurm

SILENT_SECONDS = 120.0 if os.environ.get("RUNYARD_LONG_JOBS") == "1" else 30.0
# Each waits until it may end, and says where it was.
WAITS = """\
import os, pathlib, sys, time
here = pathlib.Path(os.environ["SHARED"])
name, number = sys.argv[1:]
(here / f"{name}-up-{number}").touch()
while not (here / f"{name}-go").exists():
    time.sleep(0.05)
print("task", number, "ends on", os.environ["SLURMD_NODENAME"], flush=True)
"""


class Sweep:
    """A list of tasks that wait, each for a whole node, so that some of them are queued."""

    def __init__(self, yard: Yard, name: str, tasks: int, *words: str) -> None:
        self.yard, self.name, self.tasks = yard, name, tasks
        lines = [f"{sys.executable} {yard.project}/waits.py {name} {task}" for task in range(tasks)]
        yard.write(f"{name}.txt", "\n".join(lines) + "\n")
        self.said: dict[str, Any] = yard.submit(
            "farm", f"{name}.txt", "--on", "slurm", "--trials-each", "1", "--cpus", "4", *words
        )

    @property
    def job(self) -> str:
        return str(self.said["jobs"][0]["job_id"])

    def at_work(self) -> int:
        return len(list(self.yard.project.glob(f"{self.name}-up-*")))

    def wait_until_at_work(self, tasks: int) -> None:
        until(lambda: self.at_work() == tasks, lambda: f"{self.at_work()} of {tasks} at work", 180)

    def let_go(self) -> None:
        (self.yard.project / f"{self.name}-go").touch()

    def nodes(self) -> dict[str, str]:
        """Where each task ended."""
        return dict(re.findall(r"task (\d+) ends on (n\d)", self.yard.logs(self.said)))

    def check_all_ran_once(self) -> None:
        found = self.yard.ended(self.said["sweep"], 300)
        assert found["counts"]["finished"] == self.tasks, self.yard.logs(self.said)
        trials = self.yard.api.sweeps.trials(found["key"])
        assert [trial["attempts"] for trial in trials] == [1] * self.tasks
        assert sorted(self.nodes()) == [str(task) for task in range(self.tasks)]
        records = self.yard.cluster.wait_for(self.job, FINAL_STATES, 180)
        assert {record["JobState"] for record in records} == {"COMPLETED"}


@pytest.fixture(scope="module")
def yard(module_environment: pytest.MonkeyPatch, module_yard: Yard) -> Yard:
    module_environment.setenv("SHARED", str(module_yard.project))
    module_yard.write("waits.py", WAITS)
    return module_yard


@pytest.fixture
def drained(slurm_cluster: SlurmCluster) -> Iterator[list[str]]:
    """Nodes that a test took out of service; they are back afterwards."""
    nodes: list[str] = []
    yield nodes
    for node in nodes:
        slurm_cluster.run("scontrol", "update", f"nodename={node}", "state=resume", check=False)


def drain(cluster: SlurmCluster, nodes: list[str], drained: list[str]) -> None:
    for node in nodes:
        drained.append(node)
        cluster.run("scontrol", "update", f"nodename={node}", "state=drain", "reason=fan is loud")


def test_a_drained_node_ends_its_trial_and_others_take_the_rest(
    yard: Yard, drained: list[str]
) -> None:
    sweep = Sweep(yard, "drained", 6)
    sweep.wait_until_at_work(4)
    drain(yard.cluster, ["n1"], drained)
    sweep.let_go()
    sweep.check_all_ran_once()
    # Its own trial only, and none of the two that were queued.
    assert sorted(sweep.nodes().values()).count("n1") == 1


def test_where_all_nodes_are_drained_status_says_so(yard: Yard, drained: list[str]) -> None:
    drain(yard.cluster, yard.cluster.spec.node_names, drained)
    sweep = Sweep(yard, "nowhere", 1)
    sweep.let_go()

    def told() -> str:
        return yard.type("status", sweep.job).stdout

    until(lambda: "no node that it could use is in service" in told(), told, 60)
    for node in yard.cluster.spec.node_names:
        yard.cluster.run("scontrol", "update", f"nodename={node}", "state=resume")
    sweep.check_all_ran_once()


class Typed:
    """A job that is submitted while other things happen."""

    def __init__(self, yard: Yard, name: str) -> None:
        self.yard, self.name = yard, name
        path = f"{with_python()['PATH'].partition(':')[0]}:{yard.cluster.env['PATH']}"
        words = ("submit", "--json", "--exp-name", name, "--", "true")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "runyard", *words], cwd=yard.project, text=True,
            env={**os.environ, **yard.cluster.env, "PATH": path},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def check_ran_once(self) -> None:
        out, complaints = self.process.communicate(timeout=300)
        assert self.process.returncode == 0, complaints
        assert re.search("Slurm is busy|waiting for Slurm", complaints), complaints
        said = json.loads(out)
        self.yard.cluster.wait_for(said["jobs"][0]["job_id"], "COMPLETED", 180)
        (trial,) = self.yard.api.sweeps.trials(self.yard.ended(said["sweep"])["key"])
        assert (trial["state"], trial["attempts"]) == ("finished", 1)
        # A request that piled up may have become a second job: it was taken back.
        name = f"--name=run-project-{self.name}"
        assert self.yard.cluster.run("squeue", "-h", name).stdout == ""


def check_status(yard: Yard, sweep: Sweep, finished: int) -> None:
    """What runyard itself knows is told, and that Slurm does not answer."""
    words = ("status", str(sweep.said["sweep"]))
    told = json.loads(yard.type(*words, "--json").stdout)
    assert told["sweeps"][0]["counts"]["finished"] == finished
    assert told["slurm"]["trouble"]
    shown = yard.type(*words).stdout
    assert f"{finished} finished" in shown
    assert "Slurm does not tell how the jobs stand" in shown


def test_a_controller_that_is_silent_for_a_while(yard: Yard) -> None:
    """Trials begin and end without it, and what is typed meanwhile waits for it, or says so."""
    sweep = Sweep(yard, "silent", 4)
    sweep.wait_until_at_work(4)
    with yard.cluster.stopped_controller() as go_on:
        silent_until = time.monotonic() + SILENT_SECONDS
        typed = Typed(yard, "meanwhile")
        sweep.let_go()
        assert yard.ended(sweep.said["sweep"])["counts"]["finished"] == 4
        check_status(yard, sweep, 4)
        time.sleep(max(0.0, silent_until - time.monotonic()))
        go_on()
        typed.check_ran_once()
    sweep.check_all_ran_once()


def test_a_controller_that_is_started_again_in_a_sweep(yard: Yard) -> None:
    """The two that were queued run when it is there again."""
    sweep = Sweep(yard, "restart", 6)
    sweep.wait_until_at_work(4)
    # One job more: what the controller saves then has the sweep's, and that they run.
    before = time.time()
    another = yard.cluster.submit("true", "--hold")
    jobs = yard.cluster.folder / "state" / "job_state"
    until(lambda: jobs.exists() and jobs.stat().st_mtime > before, "its state is saved", 180)
    with yard.cluster.without_controller():
        typed = Typed(yard, "restarting")
        sweep.let_go()
        until(lambda: len(sweep.nodes()) == 4, lambda: yard.logs(sweep.said), 180)
        check_status(yard, sweep, 4)
    yard.cluster.run("scancel", another)
    typed.check_ran_once()
    sweep.check_all_ran_once()
