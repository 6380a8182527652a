"""What newer releases of Slurm say in other words, as they were recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from runyard.schedulers.inside import this_job
from runyard.schedulers.slurm.facts import read_partitions
from runyard.schedulers.slurm.live_usage import read_figures, running_tasks
from runyard.train.placement import find_placement
from tests.slurm.release_page import FLOWS, PAGE, RECORD, Result, page_text, read_results

# 26.05, in a job's script: `env | grep SLURM_STEP`; SLURM_STEP_ID is not there before.
BATCH_OF_26_05 = {
    "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "-5", "SLURM_STEPID": "-5", "SLURM_PROCID": "0",
    "SLURM_NTASKS": "8", "SLURM_JOB_NUM_NODES": "2", "SLURM_JOB_END_TIME": "1794861000",
}  # fmt: skip


def test_a_script_that_has_the_number_of_a_step_is_no_step() -> None:
    job = this_job(BATCH_OF_26_05)
    assert job.step_id is None
    assert job.step_environ() == BATCH_OF_26_05
    assert find_placement(BATCH_OF_26_05).size == 1
    assert this_job({**BATCH_OF_26_05, "SLURM_STEP_ID": "4294967291"}).step_id is None
    # In a step of srun's, and in one that salloc opened for a person.
    for number in ("0", "4294967290"):
        assert this_job({**BATCH_OF_26_05, "SLURM_STEP_ID": number}).step_id == number


def test_the_end_is_known_without_a_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert this_job(BATCH_OF_26_05).find_end() == 1794861000


@pytest.mark.parametrize(
    ("shown", "gpus"),
    [
        ("gres:gpu:1", "gpu:1"),
        ("gres/gpu:1", "gpu:1"),
        ("gres/gpu:a100:2,gres/shard:4", "gpu:a100:2,shard:4"),
        ("N/A", None),
    ],
)
def test_gpus_of_running_jobs_in_each_releases_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shown: str, gpus: str | None
) -> None:
    """squeue here is a double that prints what releases were seen to print."""
    line = f"5|5|N/A|2026-11-15T20:28:50|2|500M|n1|{shown}|train"
    for name, answer in (("squeue", line), ("sstat", "5.batch|00:00:04|2048K|1")):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\necho '{answer}'\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    (task,) = running_tasks()
    assert (task.gpus, task.cpu_seconds) == (gpus, 4.0)


def test_a_step_whose_time_slurm_does_not_know_counts_nothing() -> None:
    """26.05 with PrologFlags=Contain: the time of `.extern` is 2^64 ms."""
    text = "7.extern|213503982334-14:25:51|0|1\n7.batch|00:00:10|1024K|1\n"
    assert read_figures(text) == {"7": (10.0, 1 << 20)}


def test_a_partition_for_whole_nodes_in_each_releases_words() -> None:
    """26.05 was seen to print both fields, OverSubscribe=NO beside Exclusive=NODE."""
    rules = "PartitionName=old OverSubscribe=EXCLUSIVE\nPartitionName=shared OverSubscribe=NO\n"
    rules += "PartitionName=new Exclusive=NODE OverSubscribe=NO\nPartitionName=one Exclusive=USER\n"
    assert [one.name for one in read_partitions(rules) if one.is_exclusive] == ["old", "new"]


def test_a_cell_says_that_the_long_forms_ran() -> None:
    result = Result(
        version="24.11.5", passed=4, skipped=0, failed=[], date="2026-11-18", commit="abc",
        is_long=True,
    )  # fmt: skip
    assert "| chains | 4 of 4 (long, abc) |" in page_text({"24.11": {"chains": result}})


def test_every_flow_has_its_tests() -> None:
    files = [f"test_{name}.py" for names in FLOWS.values() for name in names]
    assert not [name for name in files if not RECORD.with_name(name).exists()]


def test_the_page_is_what_the_last_runs_found() -> None:
    assert PAGE.read_text() == page_text(read_results())
