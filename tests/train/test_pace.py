"""How long it will still take."""

from __future__ import annotations

import pytest

from runyard import train
from runyard.train.pace import Pace, in_words, seconds_per_step


def test_steps_that_compile_do_not_spoil_the_estimate() -> None:
    pace = Pace()
    now = 0.0
    for step in range(1, 41):
        # The first step compiles for half a minute, and so does the first of the second phase.
        now += 30 if step in (1, 21) else 0.5
        pace.mark(step, now)
    assert pace.seconds_left(40, 100) == pytest.approx(60 * 0.5)


def test_quick_steps_before_one_that_compiles_still_count() -> None:
    """Two phases of a few milliseconds a step, as on a small model."""
    pace = Pace()
    now = 0.0
    for step in range(1, 8):
        now += 20 if step in (1, 7) else 0.01
        pace.mark(step, now)
    assert pace.seconds_left(7, 12) == pytest.approx(5 * 0.01)
    pace.mark(12, now + 0.05)
    assert pace.seconds_left(12, 12) == 0


def test_the_estimate_follows_the_pace_of_late() -> None:
    pace = Pace()
    now = 0.0
    for step in range(1, 201):
        now += 1 if step <= 100 else 2
        pace.mark(step, now)
    assert pace.seconds_left(200, 300) == pytest.approx(200)


def test_nothing_is_known_at_first_and_marks_may_be_rare() -> None:
    assert seconds_per_step([]) is None
    assert seconds_per_step([(100, 7.0)]) is None
    assert seconds_per_step([(100, 7.0), (200, 9.0)]) == pytest.approx(0.02)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(12.3, "12 s"), (245, "4 min 5 s"), (3600, "1 h"), (12000, "3 h 20 min"), (90000, "1 d 1 h")],
)
def test_durations_as_people_say_them(seconds: float, words: str) -> None:
    assert in_words(seconds) == words


def test_progress_is_printed_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    for step in range(1, 1001):
        train.progress(step, 1000)
    train.progress(5, 1000)  # Another loop.
    assert len(capsys.readouterr().out.splitlines()) <= 2
