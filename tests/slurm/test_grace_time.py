"""Jobs that must make room for others, after a grace time, and jobs whose time limit is changed.

Slurm sends nothing to a job's script when its grace time begins: the agents find it out by the
answer that they share.
"""

from __future__ import annotations

import getpass
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.node.terminals import until
from tests.slurm.cluster import FINAL_STATES, ClusterSpec, SlurmCluster
from tests.slurm.plugin import MakeCluster
from tests.slurm.test_chains import starts, until_held
from tests.slurm.trainer import TRAINS, history, sweep_file, uncut
from tests.slurm.yard import Yard, open_yard

pytestmark = pytest.mark.slurm

STEPS, HELD = 20, 8
PROFILE = """\
elasticity:
  spot: [short]
"""
# Agents look every 5 s at an answer that is 15 s old at most; the rest is for a busy machine.
GRACE_SECONDS = 60


@pytest.fixture(scope="module")
def yard(
    module_environment: pytest.MonkeyPatch, module_yard: Yard, slurm_cluster: SlurmCluster
) -> Iterator[Yard]:
    change = ("scontrol", "update", "PartitionName=short")
    slurm_cluster.run(*change, "MaxTime=INFINITE", f"GraceTime={GRACE_SECONDS}")
    module_yard.write("profiles/spot.yaml", PROFILE)
    module_environment.setenv("RUNYARD_CLUSTERS", str(module_yard.project / "profiles"))
    module_environment.setenv("RUNYARD_CLUSTER", "spot")
    module_yard.write("trains.py", TRAINS)
    module_yard.write("sweep.yaml", sweep_file([1, 2], steps=STEPS, hold=HELD))
    yield module_yard
    slurm_cluster.run(*change, "MaxTime=1", "GraceTime=0")


def starts_again(yard: Yard) -> str:
    """How often Slurm starts such a job anew.

    24.11 takes it for one that has yet to make room, also after it has begun again: when it has
    ended well, it is put back once more, as is any job of Slurm's own. It finds nothing to do.
    """
    return "2" if " 24.11." in yard.cluster.run("sinfo", "--version").stdout else "1"


def test_trials_save_in_the_grace_time_and_slurm_puts_their_jobs_back(yard: Yard) -> None:
    trials_save_in_the_grace_time(yard, [1, 2], ("--partition", "short"), ("--partition=high",))


def test_the_grace_time_of_a_qos(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_slurm_cluster: MakeCluster
) -> None:
    """Of a cluster that preempts by QOS; its profile is the draft that `doctor` writes."""
    cluster = make_slurm_cluster(ClusterSpec(nodes=1, preempts_by="qos"))
    for words in (
        ("add", "qos", "spare", f"gracetime={GRACE_SECONDS}", "preemptmode=requeue"),
        ("add", "qos", "urgent", "preempt=spare", "priority=1000"),
        ("modify", "user", getpass.getuser(), "set", "qos=normal,spare,urgent"),
    ):
        cluster.run("sacctmgr", "--immediate", *words)
    with open_yard(tmp_path / "yard", monkeypatch, cluster) as yard:
        yard.write("trains.py", TRAINS)
        yard.write("sweep.yaml", sweep_file([1], steps=STEPS, hold=HELD))
        yard.type("server", "start")
        yard.type("doctor", "--write")
        profile = json.loads(yard.type("clusters", "show", "--json").stdout)
        assert profile["elasticity"]["spot_qos"] == ["spare"]
        assert profile["elasticity"]["grace"] == GRACE_SECONDS
        trials_save_in_the_grace_time(yard, [1], ("--qos", "spare"), ("--qos=urgent",))


def trials_save_in_the_grace_time(
    yard: Yard, lrs: list[int], spot: tuple[str, ...], urgent_words: tuple[str, ...]
) -> None:
    words = (*spot, "--agents", str(len(lrs)), "--time", "30m", "--sbatch=--nodelist=n1")
    said = yard.submit("sweep", "sweep.yaml", "--on", "slurm", *words)
    job = str(said["jobs"][0]["job_id"])
    until_held(yard, said, HELD, lrs)
    assert json.loads((Path(said["folder"]) / "job.json").read_text())["pushed_out"] is True

    urgent = yard.cluster.submit("true", *urgent_words, "--nodelist=n1", "--exclusive")
    yard.cluster.wait_for(urgent, "COMPLETED", GRACE_SECONDS + 120)
    sweep = yard.ended(said["sweep"], 180)
    tasks = yard.cluster.wait_for(job, FINAL_STATES, 180)

    assert [(task["JobState"], task["Restarts"]) for task in tasks] == [
        ("COMPLETED", starts_again(yard))
    ] * len(lrs)
    trials = {trial["values"]["lr"]: trial for trial in yard.api.sweeps.trials(sweep["key"])}
    assert sorted(trials) == lrs
    for lr, trial in trials.items():
        assert (trial["state"], trial["attempts"]) == ("finished", 2), yard.logs(said)
        # Not from step 5, where they save by themselves.
        assert sorted(starts(yard, said, lr)) == [0, HELD + 1], yard.logs(said)
        assert history(yard.api, trial["id"]) == uncut(STEPS, lr)
    assert yard.logs(said).count("another job gets this one's place") == len(lrs)
    assert yard.logs(said).count("waits for Slurm to put the job back into the queue") == len(lrs)


def test_a_changed_time_limit_reaches_the_agent(yard: Yard) -> None:
    words = ("--partition", "short", "--time", "30m", "--")
    program = ("python", "trains.py", "--steps", str(STEPS), "--hold", str(HELD))
    said = yard.submit("submit", *words, *program)
    job = str(said["jobs"][0]["job_id"])
    until_held(yard, said, HELD)
    yard.cluster.run("scontrol", "update", f"JobId={job}", "TimeLimit=20")
    until(lambda: "time limit was changed" in yard.logs(said), "the agent sees it", 300)
    (record,) = yard.cluster.show_job(job)
    (moment,) = re.findall(r"time limit was changed: it ends at (\S+)", yard.logs(said))
    assert record["EndTime"].endswith(moment)
    yard.cluster.cancel_jobs()


def test_a_job_over_two_nodes_goes_back_into_the_queue(yard: Yard) -> None:
    """When the grace time begins, Slurm sends TERM to the steps, and so to the programs."""
    words = ("--partition", "short", "--form", "nodes", "--agents", "2", "--time", "30m")
    said = yard.submit("sweep", "sweep.yaml", "--on", "slurm", *words, "--sbatch=--nodelist=n[1-2]")
    job = str(said["jobs"][0]["job_id"])
    until_held(yard, said, HELD, [1, 2])

    urgent = yard.cluster.submit("true", "--partition=high", "--nodelist=n[1-2]", "--exclusive")
    yard.cluster.wait_for(urgent, "COMPLETED", GRACE_SECONDS + 120)
    sweep = yard.ended(said["sweep"], 180)
    (task,) = yard.cluster.wait_for(job, FINAL_STATES, 180)

    assert (task["JobState"], task["Restarts"]) == ("COMPLETED", starts_again(yard))
    for trial in yard.api.sweeps.trials(sweep["key"]):
        lr = trial["values"]["lr"]
        assert (trial["state"], trial["attempts"]) == ("finished", 2), yard.logs(said)
        # They save at the fifth step by themselves, and not on TERM.
        assert sorted(starts(yard, said, lr)) == [0, 5], yard.logs(said)
        assert history(yard.api, trial["id"]) == uncut(STEPS, lr)
    assert yard.logs(said).count("waits for Slurm to put the job back into the queue") == 1
