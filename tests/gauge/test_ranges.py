"""Told intervals hold: nine of ten runs end inside, on programs that set none of the margins."""

from __future__ import annotations

from statistics import median

from benchmarks.estimate_ranges import EACH_KIND, KINDS, all_told, coverage, past_coverage

from runyard.gauge.estimates import Basis, SubmissionSize, estimate, estimate_text
from runyard.gauge.measured import estimate_range

# The margins were set on the seeds 0 to 19.
SEEDS = range(100, 105)


def test_nine_of_ten_runs_end_within_what_was_told() -> None:
    told = all_told(SEEDS)
    assert len(KINDS) * EACH_KIND == 60
    for again in (False, True):
        chosen = [one for one in told if one.again == again]
        assert coverage(chosen) >= 0.85
        assert median(one.width for one in chosen) < (0.2 if again else 0.6)
    for kind in ("constant", "filling_buffer", "evaluations", "warm_up"):
        assert coverage([one for one in told if one.kind == kind]) >= 0.85, kind


def test_a_first_run_that_gets_slower_is_not_told_as_too_short() -> None:
    """By its pace alone it was told as two thirds of what it took."""
    slowing = [one for one in all_told(range(100, 102)) if one.kind == "filling_buffer"]
    assert median(one.expected / one.truth for one in slowing if not one.again) > 0.85


def test_earlier_trials_tell_where_the_next_one_is() -> None:
    inside = past_coverage(range(100, 110))
    assert min(inside[count] for count in (3, 5, 10, 20, 40)) >= 0.85, inside


def test_the_gauge_sees_a_trend_from_outside() -> None:
    """Of a program that says nothing but its steps."""
    now, marks = 0.0, [(0, 0.0)]
    for step in range(1, 61):
        now += 1 + step / 100
        marks.append((step, now))
    told = estimate_range(marks, 600, began=0.0, now=now)
    assert told is not None
    expected, low, high = told
    assert low < expected < high
    assert high > now + sum(1 + step / 100 for step in range(61, 601))
    assert low < now + 540 * 1.6


def test_the_range_is_in_the_sentence_before_a_submission() -> None:
    basis = Basis(1800.0, 1800.0, "runyard gauge measured it", between=(1500.0, 2700.0))
    size = SubmissionSize(trials=4, agents=2, slots=1)
    text = estimate_text(estimate(basis, size), size)
    assert "4 trials of about 30 min each, 25 min to 45 min (runyard gauge measured it)" in text
