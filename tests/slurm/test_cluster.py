"""The disposable Slurm is a real one, comes alone, and leaves nothing behind."""

from __future__ import annotations

import concurrent.futures
import contextlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.node.terminals import until

from . import __main__ as command_line
from .cluster import ClusterError, ClusterSpec, SlurmCluster
from .plugin import MakeCluster, require_slurm
from .warden import processes_of

pytestmark = pytest.mark.slurm

REPOSITORY = Path(__file__).parents[2]
SMALL = ClusterSpec(nodes=1, gpus=0, accounting=False)

OWNER = """
import time
from tests.slurm.cluster import ClusterSpec, SlurmCluster
cluster = SlurmCluster(ClusterSpec(nodes=2, accounting=False))
cluster.start()
job = cluster.submit("trap '' TERM; env -i sleep 300 & wait")
cluster.wait_for(job, "RUNNING")
print(cluster.folder, flush=True)
time.sleep(300)
"""


def wait_until(true: Callable[[], bool], timeout: float = 180) -> None:
    until(true, "it to be so", timeout)


def command_name(pid: int) -> str | None:
    """What a process runs; None once it has ended, reaped or not."""
    with contextlib.suppress(OSError):
        name, _, state = Path(f"/proc/{pid}/stat").read_text().partition("(")[2].rpartition(")")
        return None if state.split()[0] in "ZX" else name
    return None


def wait_for_processes(folder: Path, *names: str) -> set[int]:
    """All of a cluster's processes, once those named here are among them."""
    # A job counts as running a moment before its script does.
    wait_until(lambda: {command_name(pid) for pid in processes_of(folder)} >= set(names))
    return processes_of(folder)


def test_all_nodes_are_idle(slurm_cluster: SlurmCluster) -> None:
    nodes = slurm_cluster.run("sinfo", "-h", "-N", "-p", "main", "-o", "%N %T").stdout
    assert nodes.splitlines() == ["n1 idle", "n2 idle", "n3 idle", "n4 idle"]


def test_two_jobs_on_a_node_get_different_gpus(slurm_cluster: SlurmCluster) -> None:
    script = "echo $CUDA_VISIBLE_DEVICES $SLURM_JOB_GPUS $SLURM_GPUS_ON_NODE; sleep 2"
    arguments = ("--nodelist=n1", "--gres=gpu:2", "--ntasks=1")
    jobs = [slurm_cluster.submit(script, *arguments) for _ in range(2)]
    for job in jobs:
        slurm_cluster.wait_for(job, "COMPLETED")
    assert {slurm_cluster.output(job) for job in jobs} == {"0,1 0,1 2\n", "2,3 2,3 2\n"}


def test_an_array_runs_every_task(slurm_cluster: SlurmCluster) -> None:
    job = slurm_cluster.submit(
        "echo task $SLURM_ARRAY_TASK_ID", "--array=3,5,7", "--output=array-%a"
    )
    records = slurm_cluster.wait_for(job, "COMPLETED")
    assert {record["ArrayTaskId"] for record in records} == {"3", "5", "7"}
    assert (slurm_cluster.folder / "work" / "array-5").read_text() == "task 5\n"


def test_srun_reaches_two_nodes(slurm_cluster: SlurmCluster) -> None:
    job = slurm_cluster.submit(
        "srun printenv SLURMD_NODENAME", "--nodes=2", "--nodelist=n2,n3", "--gres=gpu:1"
    )
    slurm_cluster.wait_for(job, "COMPLETED")
    assert sorted(slurm_cluster.output(job).split()) == ["n2", "n3"]


def test_accounting_remembers_a_finished_job(slurm_cluster: SlurmCluster) -> None:
    job = slurm_cluster.submit("exit 3", "--gres=gpu:1")
    slurm_cluster.wait_for(job, "FAILED")
    question = ["sacct", "-j", job, "-X", "--noheader", "--parsable2", "-o", "State,ExitCode"]
    # The controller tells the database a moment after it knows.
    wait_until(lambda: slurm_cluster.run(*question).stdout == "FAILED|3:0\n")
    assert "gres/gpu=1" in slurm_cluster.run(*question[:-1], "AllocTRES").stdout


def test_high_preempts_main_which_starts_again(slurm_cluster: SlurmCluster) -> None:
    whole_node = ("--nodelist=n4", "--exclusive")
    first = slurm_cluster.submit(
        '[ -n "$SLURM_RESTART_COUNT" ] || sleep 300; echo restart $SLURM_RESTART_COUNT', *whole_node
    )
    slurm_cluster.wait_for(first, "RUNNING")
    urgent = slurm_cluster.submit("true", "--partition=high", *whole_node)
    slurm_cluster.wait_for(urgent, "COMPLETED")
    [record] = slurm_cluster.wait_for(first, "COMPLETED")
    assert record["Restarts"] == "1"
    assert slurm_cluster.output(first) == "restart 1\n"


def test_short_holds_back_what_asks_for_more_than_its_minute(slurm_cluster: SlurmCluster) -> None:
    job = slurm_cluster.submit("true", "--partition=short", "--time=2")
    wait_until(lambda: slurm_cluster.show_job(job)[0]["Reason"] == "PartitionTimeLimit")
    assert slurm_cluster.show_job(job)[0]["JobState"] == "PENDING"
    slurm_cluster.run("scancel", job)


def test_waiting_for_what_cannot_come_ends_at_once_with_the_job_s_words(
    slurm_cluster: SlurmCluster,
) -> None:
    job = slurm_cluster.submit("echo no such data; exit 1")
    with pytest.raises(ClusterError, match=r"FAILED[\s\S]*\n  no such data"):
        slurm_cluster.wait_for(job, "COMPLETED", timeout=180)


def test_a_refused_command_is_told_in_slurm_s_words(slurm_cluster: SlurmCluster) -> None:
    with pytest.raises(ClusterError, match="invalid partition specified: nowhere"):
        slurm_cluster.submit("true", "--partition=nowhere")


def test_clusters_started_together_do_not_see_each_other() -> None:
    require_slurm(accounting=False)
    clusters = [SlurmCluster(SMALL) for _ in range(3)]
    with contextlib.ExitStack() as running:
        for cluster in clusters:
            running.callback(cluster.stop)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(SlurmCluster.start, clusters))
        one, two, three = clusters
        one.submit("sleep 300", "--job-name=only-here")
        assert one.run("squeue", "-h", "-o", "%j").stdout == "only-here\n"
        assert two.run("squeue", "-h").stdout == three.run("squeue", "-h").stdout == ""


def test_without_accounting_sacct_says_so(make_slurm_cluster: MakeCluster) -> None:
    answer = make_slurm_cluster(SMALL).run("sacct", check=False)
    assert answer.returncode == 1
    assert "accounting storage is disabled" in answer.stderr


def test_stop_leaves_nothing_behind(make_slurm_cluster: MakeCluster) -> None:
    cluster = make_slurm_cluster(SMALL)
    folder = cluster.folder
    # A job that ignores the polite signal and hides its environment.
    job = cluster.submit("trap '' TERM; env -i sleep 300")
    cluster.wait_for(job, "RUNNING")
    pids = wait_for_processes(folder, "munged", "slurmctld", "slurmd", "slurmstepd", "sleep")
    cluster.stop()
    assert [pid for pid in pids if command_name(pid)] == []
    assert not folder.exists()
    with pytest.raises(ClusterError, match="not running"):
        cluster.run("sinfo")


def test_a_killed_owner_leaves_nothing_behind() -> None:
    require_slurm(accounting=False)
    command = [sys.executable, "-c", OWNER]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout
        folder = Path(owner.stdout.readline().strip())
        pids = wait_for_processes(folder, "munged", "slurmctld", "slurmd", "slurmstepd", "sleep")
        owner.kill()
    wait_until(lambda: not any(command_name(pid) for pid in pids))
    wait_until(lambda: not folder.exists())


def test_a_daemon_that_cannot_start_is_named_with_its_words() -> None:
    require_slurm(accounting=False)
    cluster = SlurmCluster(ClusterSpec(gpu_type="two words", accounting=False))
    with pytest.raises(ClusterError, match=r"(?s)^slurmctld ended with exit code 1:.*words"):
        cluster.start()
    with pytest.raises(ClusterError, match="not running"):
        _ = cluster.folder


def test_a_command_runs_in_a_cluster_of_its_own(capfd: pytest.CaptureFixture[str]) -> None:
    require_slurm(accounting=False)
    script = 'srun -N2 printenv SLURMD_NODENAME && echo "$SLURM_CONF" && exit 7'
    code = command_line.main(["run", "--nodes=2", "--no-accounting", "--", "sh", "-c", script])
    *nodes, conf = capfd.readouterr().out.splitlines()
    assert (code, sorted(nodes)) == (7, ["n1", "n2"])
    assert not Path(conf).exists()
