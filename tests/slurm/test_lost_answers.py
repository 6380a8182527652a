"""A controller that stands still for a while takes each job once when it goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from runyard.launch.own_jobs import submit_own
from runyard.launch.script import Part
from runyard.launch.submitting import Sender, Sheet
from runyard.schedulers.slurm.scheduler import Slurm
from tests.slurm.cluster import SlurmCluster

pytestmark = pytest.mark.slurm

SCRIPT = "#!/bin/sh\n#SBATCH --job-name={name}\n#SBATCH --hold\n#SBATCH --output=/dev/null\ntrue\n"


def impatient(cluster: SlurmCluster, tmp_path: Path) -> dict[str, str]:
    """Commands that wait for an answer for two seconds, not for ten."""
    conf = tmp_path / "slurm.conf"
    conf.write_text(f"{(cluster.folder / 'slurm.conf').read_text()}\nMessageTimeout=2\n")
    return {**cluster.env, "SLURM_CONF": str(conf)}


def third_call(action: Callable[[], None]) -> Callable[[str], None]:
    """What is told of a busy Slurm; the third time it goes on."""
    calls: list[str] = []

    def notice(text: str) -> None:
        calls.append(text)
        if len(calls) == 3:
            action()

    return notice


def test_links_of_a_server_are_sent_once(slurm_cluster: SlurmCluster, tmp_path: Path) -> None:
    scheduler = Slurm(impatient(slurm_cluster, tmp_path))
    text = SCRIPT.format(name="lost-links")
    ids = []
    try:
        for _ in range(2):
            with slurm_cluster.stopped_controller() as go_on:
                notice = third_call(go_on)
                ids.append(submit_own(text, tmp_path / "job", scheduler, notice=notice))
        there = slurm_cluster.run("squeue", "-h", "--name=lost-links", "-o", "%A").stdout.split()
        assert sorted(there) == sorted(ids)
    finally:
        slurm_cluster.cancel_jobs()


def test_agents_that_were_held_are_sent_once_and_an_old_job_is_not_taken_for_them(
    slurm_cluster: SlurmCluster, tmp_path: Path
) -> None:
    scheduler = Slurm(impatient(slurm_cluster, tmp_path))
    text = SCRIPT.format(name="lost-agents").replace(
        "true", f"#SBATCH --chdir={tmp_path}\n#SBATCH --array=1-{{0}}\ntrue"
    )
    sheet = Sheet(tmp_path, "lost-agents", "array", lambda part: text.format(part.count))
    try:
        first = Sender(sheet, scheduler).send([Part(2)]).jobs[0].job_id
        with slurm_cluster.stopped_controller() as go_on:
            sender = Sender(sheet, scheduler, third_call(go_on), before=[first], may_be_there=True)
            (job,) = sender.send([Part(5, 2)]).jobs
        words = ("squeue", "-h", "--array", "--name=lost-agents", "-o", "%F")
        tasks = slurm_cluster.run(*words).stdout.split()
        assert sorted(tasks) == sorted([first] * 2 + [job.job_id] * 5)
    finally:
        slurm_cluster.cancel_jobs()
