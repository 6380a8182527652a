"""The ledger's rules, as functions: what follows an end, how far ahead, until when."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import pytest

from runyard.end_causes import CAUSES, cause_of_exit
from runyard.search.by_number import draws, quasi_random
from runyard.search.sweep import read_sweep
from runyard.server.sweeps.ledger import trials
from runyard.server.sweeps.policy import ahead, lifecycle
from runyard.server.sweeps.policy.estimates import AtWork, eta_seconds
from runyard.server.sweeps.policy.lifecycle import STATES, after_failure, settle
from runyard.server.sweeps.policy.rules import Aim, Limit, Rules
from runyard.server.sweeps.serving.drawing import Drawing
from runyard.vocabulary import ENDED_STATES
from tests.server.a_ledger import LedgerInMemory


@pytest.mark.parametrize(
    ("exit_code", "preempting", "cause"),
    [
        (0, False, "finished"),
        (0, True, "finished"),
        (75, False, "go-on"),
        (1, False, "program"),
        (1, True, "preempted"),
        (255, False, "program"),
        (-9, False, "node"),
        (137, False, "node"),
        (-11, False, "signal"),
        (143, False, "signal"),
    ],
)
def test_the_cause_that_an_exit_code_tells(exit_code: int, preempting: bool, cause: str) -> None:
    assert cause_of_exit(exit_code, preempting=preempting) == cause


@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize("stop", ["stopped", "canceled", "paused"])
def test_what_was_asked_outranks_how_the_program_took_it(cause: str, stop: str) -> None:
    assert settle(cause, stop=stop, tries={}, progressed=False, retries={}).state == stop


@pytest.mark.parametrize("cause", ["go-on", "preempted"])
def test_who_goes_on_later_may_do_so_for_ever(cause: str) -> None:
    after = settle(cause, stop=None, tries={"node": 99}, progressed=False, retries={"node": 0})
    assert (after.state, after.queue) == ("waiting", "head")


@pytest.mark.parametrize("cause", ["node", "time"])
def test_a_cut_without_progress_is_counted(cause: str) -> None:
    tries: dict[str, int] = {}
    for number in range(1, 4):
        after = settle(cause, stop=None, tries=tries, progressed=False, retries={cause: 2})
        tries = dict(after.tries)
        assert tries[cause] == number
        assert after.state == ("waiting" if number <= 2 else "failed")
    # One that gets on is cut as often as it likes, and what was counted is forgotten.
    again = settle(cause, stop=None, tries={cause: 2}, progressed=True, retries={cause: 2})
    assert (again.state, again.queue, again.tries) == ("waiting", "head", {})


def test_failures_of_the_program_are_counted_whatever_it_logged() -> None:
    first = settle("program", stop=None, tries={}, progressed=True, retries={"program": 1})
    assert (first.state, first.queue) == ("waiting", "tail")
    second = settle(
        "signal", stop=None, tries=first.tries, progressed=False, retries={"program": 1}
    )
    assert second.state == "failed"
    assert settle("program", stop=None, tries={}, progressed=False, retries={}).state == "failed"


def test_a_death_after_a_checkpoint_is_a_cut_and_not_a_failure() -> None:
    after = settle("cut", stop=None, tries={}, progressed=True, retries={"node": 0})
    assert (after.state, after.queue, after.tries) == ("waiting", "head", {})
    stuck = settle("cut", stop=None, tries={}, progressed=False, retries={"node": 0})
    assert stuck.state == "failed", "one that never gets on is not tried for ever"
    assert settle("nan", stop=None, tries={}, progressed=True, retries={}).state == "failed"


def test_a_program_that_somebody_kills_is_tried_again_twice_unless_the_file_says_more() -> None:
    tries: Mapping[str, int] = {}
    states = []
    for _ in range(3):
        after = settle("killed", stop=None, tries=tries, progressed=False, retries={"node": 5})
        tries = after.tries
        states.append((after.state, after.queue))
    assert states == [("waiting", "tail"), ("waiting", "tail"), ("failed", "final")]
    patient = settle("killed", stop=None, tries=tries, progressed=False, retries={"node": 1000})
    assert patient.state == "waiting"


def test_a_sweep_gives_up_only_where_nothing_has_worked() -> None:
    assert after_failure({"failed": 5}, 5)
    assert not after_failure({"failed": 4}, 5)
    assert not after_failure({"failed": 9, "finished": 1}, 5)
    assert not after_failure({"failed": 9, "stopped": 1}, 5)
    assert not after_failure({"failed": 9}, 0)


def test_every_end_of_a_trial_is_one_of_few() -> None:
    for cause in CAUSES:
        after = settle(cause, stop=None, tries={}, progressed=False, retries={})
        assert after.state in ("waiting", "paused", *ENDED_STATES)
        assert (after.queue == "final") == (after.state != "waiting")


def test_no_suggestion_is_blind_to_more_than_half_of_who_is_at_work() -> None:
    assert [ahead.most_blind(at_work) for at_work in (0, 1, 2, 3, 16, 500)] == [1, 1, 1, 1, 8, 250]
    assert not ahead.is_stale(made_after=10, results=18, at_work=16)
    assert ahead.is_stale(made_after=10, results=19, at_work=16)
    assert ahead.is_stale(made_after=10, results=12, at_work=1)


def test_until_when() -> None:
    def eta(left: int | None, running_for: list[float], ended: int = 4) -> float | None:
        return eta_seconds(
            left=left,
            at_work=[AtWork(one) for one in running_for],
            ended=ended,
            busy_seconds=ended * 10,
        )

    assert eta(6, [5.0, 5.0]) == 35.0
    assert eta(0, [4.0]) == 6.0
    assert eta(0, [40.0]) == 0.0  # Longer than the others: any moment now.
    assert eta(0, []) == 0.0
    assert eta(None, [1.0]) is None
    assert eta(5, []) is None  # Nobody is at work.
    assert eta(5, [1.0], ended=0) is None


def test_trials_that_tell_how_far_they_are_need_no_trial_before_them() -> None:
    def eta(left: int, *at_work: AtWork, ended: int = 0) -> float | None:
        return eta_seconds(left=left, at_work=at_work, ended=ended, busy_seconds=ended * 10.0)

    # Two at work, of 100 s each in all; three more take turns behind them.
    assert eta(3, AtWork(20, 80), AtWork(60, 40)) == (80 + 40 + 300) / 2
    # The last one decides when nothing is left to begin.
    assert eta(0, AtWork(20, 80), AtWork(60, 40)) == 80
    # What a program says of itself outweighs how long others took.
    assert eta(0, AtWork(5, 2.0), ended=3) == 2.0
    assert eta(1, AtWork(5)) is None


def test_a_ranking_keeps_to_its_limits() -> None:
    rules = Rules(
        aims=(Aim("accuracy", maximize=True, target=0.9),), limits=(Limit("memory", 8.0),)
    )
    assert rules.score({"accuracy": 0.5, "memory": 7.0}) == -0.5
    assert rules.score({"accuracy": 0.5, "memory": 9.0}) is None
    assert rules.score({"accuracy": 0.5}) is None
    assert rules.score({"memory": 1.0}) is None
    assert rules.has_target({"accuracy": 0.9})
    assert not rules.has_target({"accuracy": 0.89})
    assert Rules.read(rules.as_json()) == rules


def test_draws_are_the_same_for_ever() -> None:
    assert draws(1, 0, 2) == draws(1, 0, 9)[:2]
    assert draws(1, 0, 2) == [0.725072332011253, 0.038347726112166636]
    assert len({tuple(draws(1, number, 3)) for number in range(100)}) == 100
    found = [value for number in range(1000) for value in draws(3, number, 10)]
    assert all(0.0 <= value < 1.0 for value in found)
    assert sum(found) / len(found) == pytest.approx(0.5, abs=0.01)


def test_quasi_random_points_lie_evenly() -> None:
    points = [quasi_random(2, 7, number) for number in range(64)]
    boxes = {(math.floor(x * 4), math.floor(y * 4)) for x, y in points}
    assert len(boxes) == 16
    assert quasi_random(2, 8, 0) != points[0]


def test_a_drawing_takes_what_was_prepared_and_nothing_else() -> None:
    sweep, _ = read_sweep(
        {
            "method": "bayes",
            "metric": {"name": "loss"},
            "parameters": {"x": {"min": 0.0, "max": 10.0}, "opt": {"values": ["a", "b"]}},
        }
    )
    assert sweep is not None
    opt_first = [leaf.name for leaf in sweep.space.leaves] == ["opt", "x"]
    point = (1.0, 0.25) if opt_first else (0.25, 1.0)
    drawing = Drawing(sweep, 1, [point, point])
    drawn = drawing.setting(0)
    assert drawn is not None
    assert drawn.settings == {"x": 2.5, "opt": "b"}
    assert drawing.left == [point]
    assert drawing.setting(1) is not None
    assert drawing.setting(2) is None


def test_the_life_of_a_trial_is_written_in_the_docs_as_it_is() -> None:
    design = Path(__file__).parents[2] / "docs" / "design.md"
    assert lifecycle.as_markdown() in design.read_text(encoding="utf-8")


def test_no_trial_can_do_what_is_not_in_the_table() -> None:
    for event, transition in lifecycle.TRANSITIONS.items():
        for state in (lifecycle.NEW, *lifecycle.STATES, lifecycle.DELETED):
            if state in transition.before:
                assert lifecycle.after(event, state).after in (*STATES, lifecycle.DELETED)
            else:
                with pytest.raises(lifecycle.Impossible, match=f"{state} cannot {event}"):
                    lifecycle.after(event, state)


def test_every_state_can_be_reached_and_every_end_has_its_event() -> None:
    reached = {one.after for one in lifecycle.TRANSITIONS.values()}
    assert reached == {*STATES, lifecycle.DELETED}
    for state, event in lifecycle.ENDS.items():
        assert lifecycle.after(event, "running").after == state


def test_a_state_is_written_by_the_table_alone() -> None:
    ledger = LedgerInMemory()
    handed = ledger.claim(ledger.agent())
    with pytest.raises(lifecycle.Impossible):
        trials.update(ledger.store, handed.trial, state="finished")
    with pytest.raises(lifecycle.Impossible):
        trials.move(ledger.store, handed.trial, "promote")
    assert ledger.trial(1)["state"] == "running"
