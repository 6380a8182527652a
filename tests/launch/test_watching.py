"""What is remembered of a job, from the queue, from accounting, and from its agents."""

from __future__ import annotations

from typing import Any

import pytest

from runyard.launch.watching import news_of
from runyard.schedulers.jobs import JobState, used
from runyard.schedulers.slurm.accounting import read_records
from runyard.schedulers.slurm.queue import read_states
from runyard.shapes.jobs import Job, JobAgent, JobDetail


def _job(**more: Any) -> Job:
    usual: dict[str, Any] = {
        "key": 1, "cluster": "c", "job_id": "40", "user": "ada", "mine": True, "sweep": 1,
        "sweep_id": "abc", "sweep_name": "abc", "entity": "ada", "project": "birds",
        "kind": "agents", "name": "grid", "array": "1-4", "tasks": 4, "folder": "/f",
        "log_pattern": None, "asked": {}, "snapshot": None, "submitted_at": 50.0,
        "polled_at": 60.0, "states": {}, "reason": None, "starts_at": None, "started_at": None,
        "ended_at": None, "used": {},
    }  # fmt: skip
    found: Job = {**usual, **more}  # type: ignore[typeddict-item]
    return found


def _queue(*lines: str) -> JobState:
    return read_states(["40"], "\n".join(lines))["40"]


RUNNING = "40|1|RUNNING|2026-03-01T10:00:00|2026-03-01T11:00:00|n1|None"
DONE = "40|2|COMPLETED|2026-03-01T10:00:00|2026-03-01T10:10:00|n2|None"
WAITING = "40|3-4%1|PENDING|2026-03-01T12:00:00|N/A||JobArrayTaskLimit"


def test_what_the_queue_says() -> None:
    news = news_of(_job(), _queue(RUNNING, DONE, WAITING), now=100.0)
    assert news["states"] == {"RUNNING": 1, "COMPLETED": 1, "PENDING": 2}
    assert (news["polled_at"], news["ended_at"]) == (100.0, None)
    assert str(news["reason"]).startswith("JobArrayTaskLimit: as many of its tasks run")
    started, starts = news["started_at"], news["starts_at"]
    assert started is not None
    assert starts is not None
    assert starts - started == 7200


def test_a_job_over_several_nodes_is_one_task_to_slurm() -> None:
    done = "40|N/A|COMPLETED|2026-03-01T10:00:00|2026-03-01T10:10:00|n[1-4]|None"
    news = news_of(_job(array=None, tasks=4), _queue(done), now=100.0)
    assert news["states"] == {"COMPLETED": 1}
    assert news["ended_at"] is not None


def test_tasks_that_left_the_queue_are_as_they_were_known() -> None:
    before = _job(states={"RUNNING": 2, "COMPLETED": 1, "FAILED": 1})
    news = news_of(before, _queue(RUNNING), now=100.0)
    assert news["states"] == {"RUNNING": 1, "COMPLETED": 1, "FAILED": 1, "UNKNOWN": 1}
    assert news["ended_at"] is None


def test_accounting_knows_how_tasks_ended_that_left_the_queue() -> None:
    known = read_records(SACCT)
    news = news_of(_job(tasks=3), _queue(), known, now=100.0)
    assert news["states"] == {"COMPLETED": 1, "OUT_OF_MEMORY": 1, "CANCELLED": 1}
    assert news["ended_at"] == max(one.end or 0.0 for one in known)
    assert news["used"]["memory_peak"] == 3 << 30


def test_without_accounting_a_job_that_is_gone_ended_as_its_agents_say() -> None:
    agent: JobAgent = {
        "key": 1, "job": "40_1", "node": "n1", "host": "h", "pid": 1, "slots": 1, "running": 0,
        "packing": None, "created_at": 51.0, "heard_at": 70.0, "left_at": 75.0, "why": "done",
    }  # fmt: skip
    lost: JobAgent = {**agent, "key": 2, "job": "40_2", "left_at": None, "heard_at": 90.0}
    told: Any = {**_job(tasks=2), "agents": [agent, lost], "script": None, "environment": {}}
    detail: JobDetail = told
    news = news_of(_job(tasks=2), _queue(), now=100.0, detail=detail)
    assert news["states"] == {"COMPLETED": 1, "UNKNOWN": 1}
    assert news["ended_at"] == 90.0


def test_a_job_that_nobody_knows_any_more_ended_when_it_was_last_seen() -> None:
    news = news_of(_job(tasks=1, states={"RUNNING": 1}), _queue(), now=100.0)
    assert (news["states"], news["ended_at"]) == ({"UNKNOWN": 1}, 60.0)


def test_lines_that_make_no_sense_are_passed_over() -> None:
    assert _queue("", "nonsense", "40|", "41|1|RUNNING|x|y|n1|None").tasks == ()
    odd = _queue("40|1|HIBERNATING|soon|never|n1|None")
    assert odd.states == {"UNKNOWN": 1}
    assert odd.tasks[0].start is None


# As sacct prints it: a task with two steps, one that ran out of memory, one that never ran.
SACCT = "\n".join(
    (
        "40_1|COMPLETED|0:0|2026-03-01T10:00:00|2026-03-01T10:10:00|600|60|4|00:30:00||8G|"
        "billing=4,cpu=4,gres/gpu=2,mem=8G,node=1|n1|gpu|grid|2026-03-01T09:00:00|lab",
        "40_1.batch|COMPLETED|0:0|2026-03-01T10:00:00|2026-03-01T10:10:00|600||4|00:30:00|1G||"
        "cpu=4|n1||batch|2026-03-01T10:00:00|lab",
        "40_1.0|COMPLETED|0:0|2026-03-01T10:00:00|2026-03-01T10:10:00|600||4|00:30:00|3072M||"
        "cpu=4|n1||python|2026-03-01T10:00:00|lab",
        "40_2|OUT_OF_ME+|0:125|2026-03-01T10:00:00|2026-03-01T10:05:00|300|60|4|01:02.500||8G|"
        "cpu=4,node=1|n2|gpu|grid|2026-03-01T09:00:00|lab",
        "40_[3-4]|CANCELLED by 1000|0:0|None|2026-03-01T10:11:00|0|60|0|00:00:00||8G||"
        "None assigned|gpu|grid|2026-03-01T09:00:00|lab",
        "half a line|COMPLETED",
    )
)


@pytest.mark.parametrize(
    ("tres", "gpus"),
    [
        ("cpu=4,gres/gpu:a100=2,node=1", 2),
        ("gres/gpu:a100=2,gres/gpu:h100=1", 3),
        ("gres/gpu=3,gres/gpu:a100=2,gres/gpu:h100=1", 3),
        ("cpu=4,gres/gpumem=40G,gres/shard=2", 0),
    ],
)
def test_gpus_count_where_a_site_accounts_for_their_types_alone(tres: str, gpus: int) -> None:
    line = SACCT.splitlines()[0].replace("billing=4,cpu=4,gres/gpu=2,mem=8G,node=1", tres)
    assert read_records(line)[0].gpus == gpus


def test_what_sacct_prints_is_read_by_task() -> None:
    first, second, never = read_records(SACCT)
    assert (first.which, first.job_id, first.state.name) == ("40_1", "40", "COMPLETED")
    assert (first.gpus, first.cpus, first.seconds, first.limit) == (2, 4, 600.0, 3600.0)
    assert (first.memory_peak, first.memory_asked) == (3 << 30, 8 << 30)
    assert (second.state.name, second.cpu_seconds, second.account) == ("OUT_OF_MEMORY", 62.5, "lab")
    assert (never.start, never.nodes, never.state.name) == (None, None, "CANCELLED")


def test_use_is_summed_over_the_tasks_that_ran() -> None:
    told = used(read_records(SACCT))
    assert (told["tasks"], told["seconds"], told["longest_seconds"]) == (2, 900.0, 600.0)
    assert (told["cpu_seconds"], told["cpu_seconds_held"]) == (1862.5, 3600.0)
    assert told["gpu_seconds_held"] == 1200.0
    assert used([]) == {}


@pytest.mark.parametrize(
    ("text", "cpus", "size"),
    [("8G", 1, 8 << 30), ("4Gn", 4, 4 << 30), ("2Gc", 4, 8 << 30), ("1.5M", 1, 3 << 19),
     ("512K", 1, 1 << 19), ("16?", 1, None), ("", 1, None),
     ("18446744073709551614M", 1, None)],
)  # fmt: skip
def test_sizes_as_old_and_new_releases_write_them(text: str, cpus: int, size: int | None) -> None:
    from runyard.schedulers.slurm.values import read_size

    assert read_size(text, cpus) == size
