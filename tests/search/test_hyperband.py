"""W&B's hyperband, rule by rule, as W&B means it; then both of its forms at random."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from runyard.search.early_terminate import Hyperband
from runyard.search.stopping.decision import Decision
from runyard.search.stopping.hyperband import HyperbandStopper, bands_of, judge


def test_rule_1_bands_from_max_iter() -> None:
    assert bands_of(Hyperband(max_iter=27, s=2)) == [3, 9]
    assert bands_of(Hyperband(max_iter=27, s=9)) == [1, 3, 9]  # below 1 there is none
    assert bands_of(Hyperband(max_iter=5, s=2, eta=2)) == [1, 2]  # 2.5 and 1.25, truncated


def test_rule_1_bands_from_min_iter_go_on_without_end() -> None:
    bands = bands_of(Hyperband(min_iter=3))
    assert bands[:5] == [3, 9, 27, 81, 243]
    assert bands[-1] > 10**14


def test_rule_1_max_iter_wins_over_min_iter() -> None:
    assert bands_of(Hyperband(min_iter=5, max_iter=27, s=2)) == [3, 9]


def test_rule_2_an_iteration_is_a_finite_value() -> None:
    """NaN does not count: with it, the second trial would have passed the band of 2."""
    rule = Hyperband(min_iter=2)
    assert judge({1: [1.0, 1.0], 2: [9.0, math.nan]}, {1, 2}, rule) == set()
    assert judge({1: [1.0, 1.0], 2: [9.0, math.nan, 9.0]}, {1, 2}, rule) == {2}


def test_rule_3_the_threshold_is_the_value_at_n_over_eta() -> None:
    """Of six with eta 3, place 2 of 0..5: three survive, floor(n/eta) + 1 of them."""
    curves = {trial: [float(trial)] for trial in range(6)}
    assert judge(curves, set(curves), Hyperband(min_iter=1)) == {3, 4, 5}


def test_rule_3_ended_trials_count_too() -> None:
    curves = {1: [1.0], 2: [2.0], 3: [3.0], 4: [4.0]}
    assert judge(curves, {4}, Hyperband(min_iter=1, eta=2)) == {4}
    assert judge({4: [4.0]}, {4}, Hyperband(min_iter=1, eta=2)) == set()


def test_rule_3_maximize_turns_it_round() -> None:
    curves = {1: [1.0], 2: [2.0], 3: [3.0], 4: [4.0]}
    assert judge(curves, set(curves), Hyperband(min_iter=1, eta=2), maximize=True) == {1}


def test_rule_4_only_the_largest_band_that_was_passed_counts() -> None:
    """Trial 3 is the worst of all at band 1, and the best of two at band 3."""
    curves = {1: [1.0], 2: [2.0, 5.0, 5.0], 3: [9.0, 4.0, 4.0]}
    assert judge(curves, set(curves), Hyperband(min_iter=1)) == {2}


def test_rule_4_strict_takes_the_value_at_the_band() -> None:
    curves = {1: [1.0, 1.0, 1.0], 2: [9.0, 9.0, 0.5]}
    assert judge(curves, {2}, Hyperband(max_iter=6, s=1, strict=True)) == {2}
    assert judge(curves, {2}, Hyperband(max_iter=6, s=1, strict=False)) == set()


def test_rule_4_equal_to_the_threshold_goes_on() -> None:
    assert judge({1: [1.0], 2: [1.0]}, {1, 2}, Hyperband(min_iter=1, eta=2)) == set()


def test_rule_5_one_is_never_stopped_and_of_two_the_worse_one_is() -> None:
    rule = Hyperband(min_iter=1)
    assert judge({1: [5.0]}, {1}, rule) == set()
    assert judge({1: [5.0], 2: [6.0]}, {1, 2}, rule) == {2}


def test_rule_5_who_passed_a_band_can_be_stopped_for_it_later() -> None:
    stopper = HyperbandStopper(Hyperband(min_iter=1))
    assert stopper.report(1, 1, 5.0) is Decision.GO_ON
    for trial in (2, 3, 4):
        stopper.report(trial, 1, float(trial) / 10)
    assert stopper.report(1, 2, 5.0) is Decision.STOP


def test_a_value_sent_again_changes_nothing() -> None:
    stopper = HyperbandStopper(Hyperband(min_iter=1))
    stopper.report(1, 1, 1.0)
    stopper.report(2, 1, 2.0)
    stopper.report(2, 1, 0.0)
    assert stopper.report(2, 1, 0.0) is Decision.STOP


rules = st.builds(
    Hyperband,
    min_iter=st.integers(1, 3),
    eta=st.sampled_from([1.5, 2.0, 3.0]),
    strict=st.booleans(),
)


@given(
    rules, st.booleans(), st.lists(st.tuples(st.integers(0, 7), st.integers(-3, 3)), max_size=80)
)
def test_judged_on_every_report_is_judged_from_all_curves(
    rule: Hyperband, maximize: bool, reports: list[tuple[int, int]]
) -> None:
    """The memory that grows with reports says what the stateless rule says of the same moment."""
    stopper = HyperbandStopper(rule, maximize)
    curves: dict[int, list[float]] = {}
    for trial, value in reports:
        curve = curves.setdefault(trial, [])
        curve.append(float(value))
        said = stopper.report(trial, len(curve), float(value))
        assert (said is Decision.STOP) == (trial in judge(curves, {trial}, rule, maximize))
