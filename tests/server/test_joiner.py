"""When the server looks whether a run's batches are due to be joined."""

from __future__ import annotations

from runyard.server.joiner import Joiner
from runyard.server.store.segments import BATCHES, ROWS


def seen_before(run: int) -> Joiner:
    """One that has looked at the run once."""
    joiner = Joiner()
    joiner.note(run, 1, complete=False)
    joiner.take_due()
    return joiner


def test_a_run_that_is_new_to_us_is_looked_at_once() -> None:
    joiner = Joiner()
    joiner.note(7, 1, complete=False)
    joiner.note(7, 1, complete=False)
    assert joiner.take_due() == {7}
    assert joiner.take_due() == set()


def test_a_run_is_looked_at_again_when_enough_batches_came() -> None:
    joiner = seen_before(7)
    for _ in range(BATCHES):
        joiner.note(7, 1, complete=False)
        assert joiner.take_due() == set()
    joiner.note(7, 1, complete=False)
    assert joiner.take_due() == {7}
    joiner.note(7, 1, complete=False)
    assert joiner.take_due() == set()


def test_a_run_is_looked_at_again_when_enough_rows_came() -> None:
    joiner = seen_before(7)
    joiner.note(7, ROWS - 1, complete=False)
    assert joiner.take_due() == set()
    joiner.note(7, 1, complete=False)
    assert joiner.take_due() == {7}


def test_a_run_that_is_over_is_looked_at() -> None:
    joiner = seen_before(7)
    joiner.note(7, 0, complete=True)
    assert joiner.take_due() == {7}
