"""Before a submission: how long, how many hours, and whether it fits."""

from __future__ import annotations

from typing import Any

from runyard.gauge.estimates import SubmissionSize, advise, basis_of, estimate, estimate_text
from runyard.shapes.jobs import Known

HOUR = 3600.0


def known(
    *, took: float | None = None, measured: float | None = None, memory: float | None = None
) -> Known:
    sweeps: list[Any] = []
    figures: list[Any] = []
    if took is not None:
        truth = {"trials": 4, "seconds": took, "most": 1.2 * took, "memory_peak": memory,
                 "vram_peak": None, "cpus": 1.0}  # fmt: skip
        sweeps = [{"id": "abc", "name": "", "created_at": 0, "estimate": None, "truth": truth}]
    if measured is not None:
        figures = [
            {"kind": "train.py", "hardware": "NVIDIA A100", "user": "ada", "made_at": 0,
             "figures": {"whole_seconds": measured, "memory_peak": memory}},
        ]  # fmt: skip
    return {"figures": figures, "sweeps": sweeps}


def told(found: Known, asked: SubmissionSize) -> tuple[str, list[str]]:
    basis = basis_of(found)
    assert basis is not None
    notes = advise(basis, asked, time_margin=0.25, memory_margin=0.2)
    return estimate_text(estimate(basis, asked), asked), notes


def test_hours_of_cpus_and_gpus() -> None:
    asked = SubmissionSize(trials=40, agents=10, slots=2, cpus=4, gpus=1, time=2 * HOUR)
    text, notes = told(known(took=1800.0), asked)
    assert text == (
        "estimate: 40 trials of about 30 min each, 26 min to 40 min (4 trials of sweep abc took "
        "that); in "
        "all about 1 h from the start of the first; 40 CPU-hours, 10 GPU-hours"
    )
    assert notes == []


def test_what_ran_is_believed_more_than_what_was_measured() -> None:
    found = basis_of(known(took=100.0, measured=50.0))
    assert found is not None
    assert found.seconds == 100.0
    alone = basis_of(known(measured=50.0))
    assert alone is not None
    assert alone.said == "runyard gauge measured it on NVIDIA A100"
    assert basis_of(known()) is None


def test_a_trial_that_is_longer_than_its_job_gets_more_time_or_a_chain() -> None:
    short = SubmissionSize(trials=1, agents=1, slots=1, time=HOUR, longest=24 * HOUR)
    assert "--time 3h" in told(known(took=2 * HOUR), short)[1][0]
    longer = SubmissionSize(trials=1, agents=1, slots=1, time=24 * HOUR, longest=24 * HOUR)
    assert (
        "--time 1d --chain 3, if it writes checkpoints" in told(known(took=40 * HOUR), longer)[1][0]
    )
    never = SubmissionSize(trials=1, agents=1, slots=1, time=HOUR, longest=HOUR, chaining=False)
    assert "may not follow one another" in told(known(took=40 * HOUR), never)[1][0]


def test_too_many_trials_in_a_job_are_split() -> None:
    asked = SubmissionSize(trials=40, agents=2, slots=2, time=2 * HOUR)
    [note] = told(known(took=HOUR), asked)[1]
    assert "each has 10 trials to do one after the other" in note
    assert "--agents 10, fewer trials a job (--trials-each 4)" in note


def test_memory_that_will_not_do_is_told_before() -> None:
    asked = SubmissionSize(trials=8, agents=1, slots=4, time=HOUR, memory=4096)
    [note] = told(known(took=60.0, memory=2e9), asked)[1]
    assert "4 at a time took up to 8.0 GB; --memory 9G" in note
