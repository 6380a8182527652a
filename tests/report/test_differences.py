"""Differences between sets of results, against SciPy's tests, and what is said of them."""

from __future__ import annotations

import math

import pytest
import scipy  # What is used of it is loaded then; each test process reads this file.
from hypothesis import given
from hypothesis import strategies as st

from runyard.report.differences import Sample, compare, in_words

A = (0.31, 0.29, 0.33, 0.30, 0.32)
B = (0.25, 0.27, 0.24, 0.26, 0.25)
numbers = st.lists(
    st.floats(-1e3, 1e3).map(lambda value: round(value, 3)), min_size=2, max_size=8
).filter(lambda values: max(values) - min(values) > 1e-2)


@given(numbers, numbers)
def test_without_seeds_it_is_welchs_test(first: list[float], other: list[float]) -> None:
    (found,) = compare(Sample(tuple(first)), [Sample(tuple(other))])
    theirs = scipy.stats.ttest_ind(other, first, equal_var=False)
    low, high = theirs.confidence_interval(0.95)
    assert found.chance == pytest.approx(theirs.pvalue, rel=1e-6)
    assert [found.low, found.high] == pytest.approx([low, high])


def test_the_same_seeds_are_compared_seed_by_seed() -> None:
    seeds = (1, 2, 3, 4, 5)
    shuffled = Sample((B[2], B[0], B[1], B[4], B[3]), (3, 1, 2, 5, 4))
    (found,) = compare(Sample(A, seeds), [shuffled])
    assert (found.paired, found.pairs) == (True, 5)
    assert found.chance == pytest.approx(scipy.stats.ttest_rel(B, A).pvalue)


@pytest.mark.parametrize("seeds", [(1, 1, 2, 3, 4), (1, 2, 3, 4, 6)])
def test_seeds_that_do_not_pair_off_are_not_paired(seeds: tuple[int, ...]) -> None:
    (found,) = compare(Sample(A, (1, 2, 3, 4, 5)), [Sample(B, seeds)])
    assert not found.paired


def test_several_sides_are_judged_more_strictly() -> None:
    alone = compare(Sample(A), [Sample(B)])[0].chance
    among = compare(Sample(A), [Sample(B), Sample(A[1:]), Sample(A[:4])])[0].chance
    assert alone is not None
    assert among == pytest.approx(3 * alone)


def test_one_run_a_side_tells_nothing() -> None:
    (found,) = compare(Sample((1.0,)), [Sample((2.0,))])
    assert (found.mean, found.chance, found.is_told) == (1.0, None, False)
    assert "one run a side" in in_words("b", "a", found, "loss", maximize=None)


def test_results_without_spread_differ_for_sure_or_not_at_all() -> None:
    same, other = compare(Sample((1.0, 1.0)), [Sample((1.0, 1.0)), Sample((2.0, 2.0))])
    assert (same.is_told, other.is_told) == (False, True)
    assert in_words("b", "a", same, "loss", maximize=None) == "b and a have the same loss"


@pytest.mark.parametrize(
    ("maximize", "verdict"), [(True, "worse"), (False, "better"), (None, "lower")]
)
def test_what_is_said_of_a_clear_difference(maximize: bool | None, verdict: str) -> None:
    (found,) = compare(Sample(A), [Sample(B)])
    words = in_words("b", "a", found, "loss", maximize=maximize)
    assert verdict in words
    assert "lower than a's by 0.056" in words
    assert f"{found.low:.3g} to {found.high:.3g}" in words


def test_what_is_said_where_chance_is_enough() -> None:
    (found,) = compare(Sample(A), [Sample((0.3, 0.34, 0.29))])
    assert "cannot be told apart" in in_words("b", "a", found, "loss", maximize=False)


def test_deviations_are_those_of_a_sample() -> None:
    assert Sample((1.0, 3.0)).deviation == pytest.approx(math.sqrt(2))
    assert Sample((1.0,)).deviation is None
