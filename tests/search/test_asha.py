"""Asynchronous successive halving in both forms."""

from __future__ import annotations

import math
import random

from hypothesis import given
from hypothesis import strategies as st

from runyard.search.early_terminate import Asha, Hyperband
from runyard.search.stopping.asha import AshaStopper, rungs_of
from runyard.search.stopping.choose import make_stopper
from runyard.search.stopping.decision import Decision
from runyard.search.stopping.hyperband import HyperbandStopper

STOPPING = Asha(min_iter=1, max_iter=9, eta=3)
PROMOTION = Asha(min_iter=1, max_iter=9, eta=3, form="promotion")


def test_rungs_stand_below_max_iter() -> None:
    assert rungs_of(Asha(min_iter=1, max_iter=9, eta=3)) == [1, 3]
    assert rungs_of(Asha(min_iter=2, max_iter=100, eta=4)) == [2, 8, 32]
    assert rungs_of(Asha(min_iter=1))[:4] == [1, 3, 9, 27]


def test_the_best_third_goes_on_and_the_others_stop() -> None:
    stopper = AshaStopper(STOPPING)
    for trial in range(6):
        stopper.report(trial, 1, float(trial))
    said = {trial: stopper.report(trial, 2, 0.0) for trial in range(6)}
    assert [trial for trial in said if said[trial] is Decision.GO_ON] == [0, 1]


def test_the_first_to_come_goes_on_and_is_judged_again_later() -> None:
    stopper = AshaStopper(STOPPING)
    assert stopper.report(0, 1, 5.0) is Decision.GO_ON
    assert stopper.report(1, 1, 4.0) is Decision.GO_ON
    assert stopper.report(0, 2, 1.0) is Decision.STOP


def test_maximize_turns_it_round() -> None:
    stopper = AshaStopper(STOPPING, maximize=True)
    assert stopper.report(0, 1, 5.0) is Decision.GO_ON
    assert stopper.report(1, 1, 4.0) is Decision.STOP


def test_what_is_no_number_is_not_judged() -> None:
    stopper = AshaStopper(STOPPING)
    stopper.report(0, 1, 1.0)
    assert stopper.report(1, 1, math.nan) is Decision.GO_ON
    assert stopper.report(1, 2, math.inf) is Decision.GO_ON


def test_iterations_may_jump_over_a_rung() -> None:
    """With a step metric that is logged every 5: the value after the rung stands for it."""
    stopper = AshaStopper(STOPPING)
    stopper.report(0, 5, 1.0)
    assert stopper.report(1, 5, 2.0) is Decision.STOP


def test_a_paused_trial_goes_on_once_it_is_among_the_best() -> None:
    stopper = AshaStopper(PROMOTION)
    assert stopper.report(0, 1, 1.0) is Decision.GO_ON  # the only one
    assert stopper.report(1, 1, 2.0) is Decision.PAUSE
    assert stopper.promotable() is None
    for trial in (2, 3, 4, 5):
        assert stopper.report(trial, 1, 5.0) is Decision.PAUSE
    assert stopper.promotable() == 1  # two of six
    stopper.resumed(1)
    assert stopper.promotable() is None
    assert stopper.report(1, 2, 9.0) is Decision.GO_ON  # until the next rung


def test_a_higher_rung_goes_first() -> None:
    stopper = AshaStopper(PROMOTION)
    for trial in range(3):
        stopper.report(trial, 1, float(trial))
    stopper.report(0, 3, 1.0)
    stopper.resumed(1)
    assert stopper.report(1, 3, 2.0) is Decision.PAUSE
    for trial in range(3, 9):
        stopper.report(trial, 1, 1.5 if trial == 3 else 9.0)
    stopper.resumed(2)
    stopper.report(2, 3, 3.0)
    for trial in (3, 4, 5):
        stopper.resumed(trial)
        stopper.report(trial, 3, 4.0)
    assert stopper.promotable() == 1


def test_an_ended_trial_is_not_promoted_but_still_counts() -> None:
    stopper = AshaStopper(PROMOTION)
    stopper.report(0, 1, 1.0)
    stopper.report(1, 1, 2.0)
    stopper.ended(1)
    for trial in (2, 3, 4, 5):
        stopper.report(trial, 1, 5.0)
    assert stopper.promotable() is None


def test_a_restart_changes_nothing() -> None:
    """The same reports told at once, as from the store, lead to the same promotions."""
    rng = random.Random(4)
    first, curves = AshaStopper(PROMOTION), {trial: [] for trial in range(30)}
    for step in range(1, 8):
        for trial in curves:
            if trial not in first.paused:
                curves[trial].append((float(step), rng.random()))
                first.report(trial, *curves[trial][-1])
        if (chosen := first.promotable()) is not None:
            first.resumed(chosen)
    second = AshaStopper(PROMOTION)
    for trial, curve in curves.items():
        second.restore(trial, curve, is_paused=trial in first.paused)
    assert second.promotable() == first.promotable()
    assert second.paused == first.paused


def test_the_rule_of_the_file_makes_its_stopper() -> None:
    assert isinstance(make_stopper(STOPPING, maximize=False), AshaStopper)
    assert isinstance(make_stopper(Hyperband(min_iter=1), maximize=True), HyperbandStopper)


@given(
    st.sampled_from(["stopping", "promotion"]),
    st.lists(st.tuples(st.integers(0, 9), st.floats(allow_nan=True)), max_size=120),
)
def test_no_report_raises_and_the_best_at_a_rung_is_never_taken_out(
    form: str, reports: list[tuple[int, float]]
) -> None:
    stopper = AshaStopper(Asha(min_iter=1, eta=2, form=form))  # type: ignore[arg-type]
    counts: dict[int, int] = {}
    for trial, value in reports:
        counts[trial] = counts.get(trial, 0) + 1
        said = stopper.report(trial, counts[trial], value)
        reached = stopper.reached.get(trial, 0)
        if (
            reached
            and stopper.ranks[reached - 1].sorted[0][1] == trial
            and trial not in stopper.paused
        ):
            assert said is Decision.GO_ON
        chosen = stopper.promotable()
        assert chosen is None or chosen in stopper.paused
