"""When a program that saves is ended: not between a save and the row of that step.

The clock is a double: a test may not depend on how busy the machine is.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from runyard.node.attempt import after_save
from runyard.node.system.run_delay import RunDelay
from tests.node.terminals import until

BEGIN = 1000.0


class Clock:
    """Goes on when somebody sleeps."""

    def __init__(self) -> None:
        self.now = BEGIN

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def wait(monkeypatch: pytest.MonkeyPatch, newest: Callable[[float], float | None]) -> Clock:
    """Wait for a program whose newest checkpoint at a time is `newest(time)`."""
    clock = Clock()
    monkeypatch.setattr(after_save, "time", clock)
    monkeypatch.setattr(after_save, "saved_at", lambda _folder: newest(clock.now))
    after_save.wait_for_row("folder", [], BEGIN + after_save.LONGEST_WAIT)
    return clock


@pytest.mark.parametrize("saved", [None, BEGIN - 1, BEGIN - 3600])
def test_who_has_not_just_saved_is_ended_at_once(
    monkeypatch: pytest.MonkeyPatch, saved: float | None
) -> None:
    assert wait(monkeypatch, lambda _now: saved).now == BEGIN


@pytest.mark.parametrize("saved", [BEGIN - 0.001, BEGIN, BEGIN + 7200])
def test_who_has_just_saved_has_a_moment_to_log(
    monkeypatch: pytest.MonkeyPatch, saved: float
) -> None:
    """Also where the clock of the file server is ahead."""
    waited = wait(monkeypatch, lambda _now: saved).now - BEGIN
    assert 0.2 < waited < 0.3


@pytest.mark.parametrize("every", [0.08, 0.1, 0.2, 0.4])
@pytest.mark.parametrize("offset", [0.0, 0.3, 0.9])
def test_who_saves_often_is_ended_between_two_saves(
    monkeypatch: pytest.MonkeyPatch, every: float, offset: float
) -> None:
    def newest(now: float) -> float:
        return now - (now + offset * every) % every

    now = wait(monkeypatch, newest).now
    assert now - newest(now) > 0.3 * every


def test_who_never_stops_writing_is_not_waited_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    waited = wait(monkeypatch, lambda now: now).now - BEGIN
    assert waited == pytest.approx(after_save.LONGEST_WAIT, abs=0.02)


def test_a_real_file_tells(tmp_path: Path) -> None:
    (tmp_path / "last.pt").touch()
    after_save.wait_for_row(str(tmp_path), [], time.time() + 60)
    assert time.time() - os.stat(tmp_path / "last.pt").st_mtime > 0.2  # noqa: PTH116


def test_a_program_that_has_no_core_has_its_moment_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """It saved and cannot go on: half of the time it is ready and does not run."""
    clock, busy = Clock(), 7
    delay = SimpleNamespace(seconds=lambda: (clock.now - BEGIN) / 2)
    monkeypatch.setattr(after_save, "time", clock)
    monkeypatch.setattr(after_save, "saved_at", lambda _folder: BEGIN)
    monkeypatch.setattr(after_save, "RunDelay", lambda _program: delay)
    after_save.wait_for_row("folder", [busy], BEGIN + after_save.LONGEST_WAIT)
    assert clock.now - BEGIN == pytest.approx(0.5, abs=0.03)


def test_the_kernel_says_for_how_long_a_process_had_no_core() -> None:
    """Two that share a core: one of them always waits."""
    core = min(os.sched_getaffinity(0))
    turns = [
        subprocess.Popen(
            [sys.executable, "-c", f"import os; os.sched_setaffinity(0, {{{core}}})\nwhile 1: pass"]
        )
        for _ in range(2)
    ]
    pids = [turn.pid for turn in turns]
    try:
        delay = RunDelay(pids)
        until(lambda: delay.seconds() > 0.2, lambda: f"{delay.seconds()} s")
    finally:
        for turn in turns:
            turn.kill()
            turn.wait()


def test_who_saves_while_we_are_late_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine kept us waiting between the look and the stop, and the program saved again."""
    saved, sent = [BEGIN - 0.3, BEGIN + 1], list[int]()

    def stop(_program: object, number: int) -> None:
        sent.append(number)
        if len(sent) == 1:
            saved.pop(0)

    clock = Clock()
    monkeypatch.setattr(after_save, "time", clock)
    monkeypatch.setattr(after_save, "saved_at", lambda _folder: saved[0])
    monkeypatch.setattr(after_save, "send", stop)
    after_save.stop_after_row("folder", [], [], BEGIN + 60)
    assert sent == [signal.SIGSTOP, signal.SIGCONT, signal.SIGSTOP]
