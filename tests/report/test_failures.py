"""Failures by cause."""

from __future__ import annotations

from runyard.report.failures import failures
from tests.report.example import HOUR, effort, trial, work


def test_causes_are_counted_with_what_they_cost() -> None:
    trials = [trial(1, 1.0), trial(2, None, "failed"), trial(3, 0.5)]
    ran = [
        effort(1, cause="time", exit_code=0),
        effort(1, number=2),
        effort(2, cause="program", exit_code=3, usage={"cpu_seconds": 60.0}),
        effort(2, number=2, cause="program", exit_code=3, usage={"cpu_seconds": 40.0}),
        effort(3),
        effort(3, end=None),
    ]
    program, time = failures(trials, ran, work(ran)["causes"])
    assert (program.cause, program.words) == ("program", "the program failed")
    assert (program.attempts, program.trials, program.failed) == (2, 1, 1)
    assert (program.seconds, program.core_seconds) == (2 * HOUR, 100.0)
    assert program.example == "run00002 (exit code 3)"
    assert (time.attempts, time.failed, time.goes_on) == (1, 0, True)


def test_a_trial_that_no_agent_of_ours_ran_counts_itself() -> None:
    [one] = failures([trial(1, None, "failed")], [], {})
    assert (one.cause, one.attempts, one.trials, one.failed) == ("program", 1, 1, 1)


def test_where_all_went_well_there_is_nothing_to_tell() -> None:
    assert failures([trial(1, 1.0)], [effort(1), effort(1, cause="stopped")], {}) == []
