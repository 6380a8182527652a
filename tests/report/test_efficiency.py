"""What jobs had and used: from accounting, and from agents where there is none."""

from __future__ import annotations

import pytest

from runyard.report.efficiency import covered, use_of, use_outside
from tests.report.example import GIB, HOUR, accounted, effort, job, worker


def test_accounting_is_believed_and_agents_tell_of_gpus() -> None:
    usage = {"cpu_seconds": 1.0, "memory_peak": GIB, "gpu": "GPU-a", "gpu_use": 0.5,
             "vram_peak": 11 * GIB, "vram_total": 80 * GIB}  # fmt: skip
    asked = {"cpus": 8, "memory": 32 * 1024, "time": 86400.0, "gpus": 1}
    held = accounted(gpu_seconds_held=2 * HOUR)
    use = use_of(job(asked=asked, used=held), [worker()], [effort(usage=usage)], now=2 * HOUR)
    assert use.source == "accounting"
    assert (use.cpu_held, use.cpu_used) == (16 * HOUR, 2.6 * HOUR)
    assert use.cpu_idle == pytest.approx(13.4 * HOUR)
    assert use.memory_peak == int(4.9 * GIB)
    # An hour at half, and an hour without any program.
    assert (use.gpu_held, use.gpu_used, use.gpu_idle) == (2 * HOUR, 0.5 * HOUR, 1.5 * HOUR)
    assert (use.vram_peak, use.vram_total, use.gpus_touched) == (11 * GIB, 80 * GIB, 1)


def test_without_accounting_agents_tell_of_all() -> None:
    usage = {"cpu_seconds": 0.5 * HOUR, "memory_peak": GIB}
    ran = [effort(1, 0, HOUR, usage=usage), effort(2, HOUR, 2 * HOUR, usage=usage)]
    use = use_of(job(), [worker()], ran, now=9 * HOUR)
    assert use.source == "agents"
    assert (use.seconds, use.longest, use.limit) == (2 * HOUR, 2 * HOUR, 86400)
    assert (use.cpu_held, use.cpu_used) == (16 * HOUR, HOUR)
    # One after the other: their memory does not add up.
    assert (use.memory_peak, use.at_once) == (GIB, 1)


def test_memory_of_programs_side_by_side_adds_up() -> None:
    usage = {"memory_peak": GIB}
    ran = [effort(1, 0, HOUR, usage=usage), effort(2, 10, 2 * HOUR, usage=usage)]
    use = use_of(job(), [worker()], ran, now=2 * HOUR)
    assert (use.memory_peak, use.at_once) == (2 * GIB, 2)


def test_a_gpu_that_several_share_is_counted_once() -> None:
    usage = {"gpu": "GPU-a", "gpu_use": 0.8, "vram_peak": GIB, "vram_total": 80 * GIB}
    ran = [effort(1, 0, HOUR, usage=usage), effort(2, 0, HOUR, usage=usage)]
    asked = {"cpus": 8, "gpus": 1}
    use = use_of(job(asked=asked), [worker(end=HOUR)], ran, now=HOUR)
    assert use.gpu_used == pytest.approx(0.8 * HOUR)


def test_tasks_of_an_array_are_held_each_as_long_as_its_agent() -> None:
    tasks = [worker(1, "4021_1", 0, HOUR), worker(2, "4021_2", HOUR, 4 * HOUR),
             worker(3, "9999_1", 0, 90 * HOUR)]  # fmt: skip
    use = use_of(job(tasks=2), tasks, [], now=9 * HOUR)
    assert (use.tasks, use.seconds, use.longest) == (2, 4 * HOUR, 3 * HOUR)
    assert use.cpu_used is None
    assert use.cpu_idle is None


def test_an_agent_that_never_left_held_its_task_until_it_was_last_heard() -> None:
    lost = worker(end=HOUR)
    lost["left_at"] = None
    running = [effort(1, 0, None)]
    assert use_of(job(), [lost], [], now=9 * HOUR).seconds == HOUR
    assert use_of(job(ended_at=None), [lost], running, now=9 * HOUR).seconds == 9 * HOUR


def test_what_failed_is_lost() -> None:
    usage = {"cpu_seconds": 100.0}
    ran = [effort(1, usage=usage), effort(2, usage=usage, cause="program"),
           effort(3, usage=usage, cause="preempted")]  # fmt: skip
    assert use_of(job(), [worker()], ran, now=HOUR).cpu_lost == 100.0


def test_of_a_program_on_many_nodes_an_agent_saw_one_alone() -> None:
    asked = {"cpus": 4, "nodes": 4, "memory": 1024}
    ran = [effort(usage={"cpu_seconds": HOUR, "memory_peak": GIB // 2})]
    use = use_of(job(asked=asked), [worker()], ran, now=2 * HOUR)
    assert use.cpu_used is None
    assert use.cpu_held == 4 * 4 * 2 * HOUR
    assert use.memory_peak == GIB // 2


def test_outside_of_jobs_nothing_was_held() -> None:
    use = use_outside([effort(usage={"cpu_seconds": 9.0, "memory_peak": GIB})], now=HOUR)
    assert (use.cpu_held, use.cpu_used, use.memory_peak, use.longest) == (None, 9.0, GIB, HOUR)


def test_stretches_that_overlap_are_covered_once() -> None:
    assert covered([(0, 4), (1, 2), (3, 6), (8, 9)]) == 7
    assert covered([]) == 0
