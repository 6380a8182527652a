"""What to ask for the next time."""

from __future__ import annotations

from typing import Any

import pytest

from runyard.report.advice import Change, Margins, changes, wishes
from runyard.report.efficiency import use_of
from tests.report.example import GIB, HOUR, accounted, effort, job, worker

GPU = {"cpus": 8, "memory": 32 * 1024, "time": 86400.0, "gpus": 1}


def advised(ran: list[Any] | None = None, **given: Any) -> dict[str, Change]:
    one = job(**{"used": accounted(), **given})
    use = use_of(one, [worker()], ran or [], now=2 * HOUR)
    return {change.option: change for change in changes([one], [use])}


def test_less_memory_than_was_asked() -> None:
    assert advised()["--memory"].words == (
        "ask --memory 6G instead of 32G: "
        "the most that was used is 4.9 GB; a smaller job starts sooner"
    )


def test_margins_are_the_users() -> None:
    one = job(used=accounted())
    use = use_of(one, [worker()], [], now=2 * HOUR)
    wide = Margins(memory=1.0, time=1.0)
    found = {change.option: change.better for change in changes([one], [use], wide)}
    assert (found["--memory"], found["--time"]) == ("10G", "4h")


def test_fewer_cpus_and_what_they_would_have_saved() -> None:
    change = advised()["--cpus"]
    assert (change.asked, change.better) == ("8", "2")
    assert "1.3 of 8 cores were busy" in change.why
    assert change.core_seconds == 6 * 2 * HOUR


def test_never_fewer_cpus_than_programs_at_once() -> None:
    ran = [effort(number, 0, HOUR) for number in range(4)]
    assert advised(ran)["--cpus"].better == "4"


def test_less_time() -> None:
    assert "ask --time 2h30m instead of 1d" in advised()["--time"].words


def test_what_was_short_comes_first() -> None:
    found = list(advised(states={"OUT_OF_MEMORY": 1}).values())
    assert (found[0].option, found[0].better, found[0].is_needed) == ("--memory", "48G", True)
    found = list(advised(states={"TIMEOUT": 1}).values())
    assert (found[0].option, found[0].better, found[0].is_needed) == ("--time", "1d12h", True)


def test_a_gpu_that_nothing_was_put_on() -> None:
    ran = [effort(usage={"gpu": "GPU-a", "gpu_use": 0.0})]
    change = advised(ran, asked=GPU, used=accounted(gpu_seconds_held=2 * HOUR))["--gpus"]
    assert (change.asked, change.better, change.gpu_seconds) == ("1", "0", 2 * HOUR)


def test_more_programs_on_a_gpu_that_is_idle_and_empty() -> None:
    usage = {"gpu": "GPU-a", "gpu_use": 0.3, "vram_peak": 11 * GIB, "vram_total": 80 * GIB}
    ran = [effort(1, 0, 2 * HOUR, usage=usage)]
    change = advised(ran, asked=GPU, used=accounted(gpu_seconds_held=2 * HOUR))["--per-gpu"]
    assert change.better == "3"
    assert "GPUs were 30 % busy, and 3 such programs fit: 11 GB each of 80 GB" in change.why
    assert change.gpu_seconds == pytest.approx(2 * HOUR * 2 / 3)


def test_a_gpu_that_is_busy_or_full_is_left_alone() -> None:
    for use, peak in ((0.9, 11), (0.3, 60)):
        usage = {"gpu": "a", "gpu_use": use, "vram_peak": peak * GIB, "vram_total": 80 * GIB}
        ran = [effort(1, 0, 2 * HOUR, usage=usage)]
        assert "--per-gpu" not in advised(ran, asked=GPU, used=accounted(gpu_seconds_held=7200.0))


def test_where_no_driver_told_anything_nothing_is_said_of_gpus() -> None:
    ran = [effort(usage={"cpu_seconds": 1.0})]
    found = advised(ran, asked=GPU, used=accounted(gpu_seconds_held=2 * HOUR))
    assert {"--gpus", "--per-gpu"}.isdisjoint(found)


def test_what_fits_is_left_alone() -> None:
    asked = {"cpus": 2, "memory": 6 * 1024, "time": 2.5 * HOUR}
    used = accounted(limit_seconds=2.5 * HOUR, memory_asked=6 * GIB, cpu_seconds_held=4 * HOUR)
    assert advised(asked=asked, used=used) == {}
    assert changes([], []) == []


def test_where_nothing_was_asked_it_is_said_what_one_program_needs() -> None:
    ran = [effort(usage={"cpu_seconds": 2 * HOUR, "memory_peak": 3 * GIB})]
    found = {one.option: one.better for one in wishes(ran, now=HOUR)}
    assert found == {"--cpus": "3", "--memory": "4G", "--time": "1h15m"}
    assert wishes([], now=HOUR) == []
