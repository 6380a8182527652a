"""Jobs as Grid Engine itself runs them: its limits, its signals, and what they know from inside."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from runyard.clusters.profile import Profile
from runyard.config.request import Request
from runyard.schedulers.conformance import Bench
from runyard.schedulers.gridengine import queue
from runyard.schedulers.gridengine.header import header, header_lines
from runyard.schedulers.gridengine.scheduler import GridEngine
from runyard.schedulers.header_request import HeaderRequest, ScriptPlace
from runyard.schedulers.jobs import Batch
from runyard.schedulers.resources import Ruled

from .cluster import GridEngineCell
from .config import QUEUE, SLOTS
from .test_conformance import write_script

pytestmark = pytest.mark.slurm


@pytest.fixture
def bench(gridengine_cell: GridEngineCell, tmp_path: Path) -> Iterator[Bench]:
    yield Bench(GridEngine(gridengine_cell.env), write_script, tmp_path)
    gridengine_cell.cancel_jobs()


def asking(bench: Bench, body: str, *, cpus: int = 1, time: float = 300.0) -> Batch:
    """A job with the header that a request becomes."""
    ruled = Ruled(
        gpus=None, gpu_type=None, cpus=cpus, memory=100, time=time, asks_time=True,
        partition=QUEUE, account=None, qos=None, options={},
    )  # fmt: skip
    batch = bench.batch(body)
    log = bench.folder / f"{batch.name.replace('bench', 'job')}.log"
    asked = HeaderRequest("train", Request(), Profile(), ruled, "jobs", more=["-notify"])
    lines = header_lines(header(asked), ScriptPlace(str(log), bench.folder))
    return Batch("train", "\n".join(["#!/bin/sh", *lines, body]), batch.key)


def test_a_job_is_told_before_its_time_is_up_and_then_killed(bench: Bench) -> None:
    body = "trap 'echo told' USR2; while :; do sleep 0.2; done"
    job = bench.ends(bench.send(asking(bench, body, time=3.0)))
    assert job.states == {"TIMEOUT": 1}
    # All processes of the job are told, not its shell alone.
    assert "told" in bench.output()


def test_what_a_running_job_has_is_told(bench: Bench) -> None:
    job_id = bench.send(asking(bench, "sleep 60", time=120.0))
    job = bench.wait([job_id], lambda job: "RUNNING" in job.states)[job_id]
    (tasks,) = job.tasks
    assert tasks.start is not None
    assert tasks.end == tasks.start + 120
    assert tasks.nodes is not None


def test_a_job_knows_itself(bench: Bench) -> None:
    code = (
        "from runyard.schedulers.inside import this_job; job = this_job(); "
        "print(job.name, job.slots, len(job.hosts()), job.queue, job.restarts)"
    )
    job_id = bench.send(asking(bench, f"{sys.executable} -c '{code}'", cpus=2))
    assert bench.ends(job_id).states == {"COMPLETED": 1}
    assert bench.output().split() == [job_id, "2", "1", QUEUE, "0"]


def test_a_job_has_the_path_of_the_shell_that_sent_it(
    bench: Bench, gridengine_cell: GridEngineCell
) -> None:
    environ = {**gridengine_cell.env, "PATH": f"/somewhere:{gridengine_cell.env['PATH']}"}
    job_id = replace(bench, scheduler=GridEngine(environ)).send(bench.batch('echo "$PATH"'))
    bench.ends(job_id)
    assert bench.output().strip() == environ["PATH"]


def test_a_job_that_is_held_waits_until_it_is_released(
    bench: Bench, gridengine_cell: GridEngineCell
) -> None:
    first = bench.send(bench.batch("sleep 2"))
    second = bench.send(Batch("second", bench.batch("true").text, "held", after=first))
    queue.hold([second], gridengine_cell.env)
    bench.ends(first)
    assert bench.scheduler.poll([second])[second].states == {"PENDING": 1}
    queue.release([second], gridengine_cell.env)
    assert bench.ends(second).states == {"COMPLETED": 1}


def test_of_an_array_only_the_tasks_that_wait_are_cancelled(bench: Bench) -> None:
    job_id = bench.send(bench.batch("sleep 4", tasks=SLOTS + 3))
    bench.wait([job_id], lambda job: job.states.get("RUNNING") == SLOTS)
    bench.scheduler.cancel([job_id], only_waiting=True)
    assert bench.ends(job_id).states == {"COMPLETED": SLOTS, "CANCELLED": 3}


def test_what_grid_engine_will_never_take_is_refused(bench: Bench) -> None:
    batch = bench.batch("true")
    unknown = Batch("a", batch.text.replace("h_rt=300", "h_rt=300,unicorns=1"), "key")
    for reply in (bench.scheduler.try_out(unknown), bench.scheduler.submit(unknown)):
        assert reply.outcome == "refused"
        assert "unicorns" in reply.words


def test_queues_are_partitions(bench: Bench) -> None:
    (partition,) = bench.scheduler.partitions()
    assert (partition.name, partition.cpus.total, partition.longest) == (QUEUE, SLOTS, 86400.0)
    assert partition.memory[1] > 0
    assert bench.scheduler.array_size() == 75001


def test_what_a_job_used_is_on_record(bench: Bench) -> None:
    job_id = bench.send(asking(bench, "sleep 1"))
    bench.ends(job_id)
    (record,) = bench.scheduler.records([job_id])[job_id]
    assert (record.name, record.partition, record.limit, record.cpus) == ("train", QUEUE, 300.0, 1)
    assert record.exit_code == "0:0"
    assert record.seconds >= 1
