"""How long it will still take."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from runyard import train
from runyard.train import pace as pace_module
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


def test_the_estimate_is_printed_and_logged_while_the_run_goes_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second a step, by a clock of our own. The run is a double with a summary; the real client
    has it in tests/live/test_time_left.py."""
    summary: dict[str, float] = {}
    monkeypatch.setattr(pace_module, "wandb_run", lambda: SimpleNamespace(summary=summary))
    pace = Pace(print_every=30, summary_every=10)
    lines: list[str] = []
    logged: list[float] = []
    for step in range(1, 101):
        pace.mark(step, float(step))
        pace.tell(step, 100, float(step))
        lines += capsys.readouterr().out.splitlines()
        if summary.get("progress/seconds_left") is not None:
            logged.append(summary["progress/seconds_left"])
    assert [line.partition("step ")[2] for line in lines] == [
        "9 of 100, 9 %, about 1 min 31 s left (1 min 9 s to 2 min 31 s)",
        "39 of 100, 39 %, about 1 min 1 s left (55 s to 1 min 24 s)",
        "69 of 100, 69 %, about 31 s left",
        "99 of 100, 99 %, about 1 s left",
        "100 of 100, 100 %, done",
    ]
    # Logged three times as often: at steps 11, 21 and so on, and at the last.
    assert list(dict.fromkeys(logged)) == pytest.approx([89, 79, 69, 59, 49, 39, 29, 19, 9, 0])
    assert summary == {"progress/step": 100, "progress/total": 100, "progress/seconds_left": 0}


def test_a_slow_second_step_is_no_estimate_yet_unless_steps_are_long(
    capsys: pytest.CaptureFixture[str],
) -> None:
    quick, long = Pace(), Pace()
    for step, at in ((1, 0.0), (2, 4.0), (3, 4.02)):
        quick.mark(step, at)
        quick.tell(step, 1000, at)
    assert capsys.readouterr().out == ""
    for step in (1, 2):
        long.mark(step, 3600.0 * step)
        long.tell(step, 10, 3600.0 * step)
    assert "step 2 of 10, 20 %, about 8 h left" in capsys.readouterr().out


def test_a_loop_of_a_thousand_quick_steps_prints_once_and_its_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for step in range(1, 1001):
        train.progress(step, 1000)
    first, last = (line.partition("step ")[2] for line in capsys.readouterr().out.splitlines())
    assert first.startswith("9 of 1000, 0 %, about ")
    assert last == "1000 of 1000, 100 %, done"
