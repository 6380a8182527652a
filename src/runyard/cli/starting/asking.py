"""Ctrl-C, and other signals that ask a command to end, while an agent works for it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import FrameType

from runyard.cli.output import say

_ASKS_TO_END = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LEAVE, _DRAIN, _STOP, _CARRY_ON = "l", "d", "s", "c"
_CHOICES = {
    _LEAVE: "leave it running in the background",
    _DRAIN: "drain: what runs may finish, and nothing new begins",
    _STOP: "stop: what runs is asked to end, and goes back to the queue (or Ctrl-C again)",
    _CARRY_ON: "carry on",
}

Pause = Callable[[], AbstractContextManager[None]]


class Asked:
    """Signals that ask us to end.

    The first Ctrl-C asks back where somebody is there to answer. Otherwise, and from then on: the
    first time the agent is asked to end, the second time it kills.
    """

    def __init__(self, *, may_leave: bool = False) -> None:
        self.number: int | None = None
        self.note = ""
        self.is_left = False
        self._may_leave = may_leave
        self._may_ask = True
        self._times = self._passed = 0

    def __enter__(self) -> Asked:
        self._before = {number: signal.signal(number, self._hear) for number in _ASKS_TO_END}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def pass_on(
        self, process: subprocess.Popen[bytes], sweep: str, pause: Pause = nullcontext
    ) -> None:
        """Do what was asked since the last time. `pause` is held while somebody is asked back."""
        if self._times == 1 and self._may_ask and self.number == signal.SIGINT and _is_there():
            self._may_ask = False
            with pause():
                answer = self._ask_back(process)
            # The second Ctrl-C was the answer, not a second request.
            self._times = int(answer == _STOP)
            self.number = self.number if self._times else None
            self.is_left = answer == _LEAVE
            self._may_ask = answer == _CARRY_ON
            if answer == _DRAIN:
                process.send_signal(signal.SIGUSR1)
                self.note = "nothing new begins, and what runs may finish (Ctrl-C ends it)"
                say(self.note)
        while self._passed < self._times:
            self._passed += 1
            process.send_signal(signal.SIGTERM)
            if self._passed == 1:
                self.note = "asking what runs to end (Ctrl-C again kills it)"
                say(f"{self.note}; its trials go back to the queue of {sweep}")

    def wait(self, process: subprocess.Popen[bytes], seconds: float) -> None:
        end = time.monotonic() + seconds
        # In pieces: a signal, or the agent's end, is not to wait for the next look.
        while process.poll() is None and self._passed == self._times and time.monotonic() < end:
            time.sleep(0.02)

    def _ask_back(self, process: subprocess.Popen[bytes]) -> str:
        choices = {
            letter: what for letter, what in _CHOICES.items() if letter != _LEAVE or self._may_leave
        }
        with _letters() as letter_within:
            say("what now?")
            for letter, what in choices.items():
                print(f"  {letter}  {what}", file=sys.stderr, flush=True)
            # Another signal is an answer too, and so is the work's own end.
            while self._times == 1 and process.poll() is None:
                answer = letter_within(0.1)
                if answer in choices:
                    return answer
        return _STOP if self._times > 1 else _CARRY_ON

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        self.number = number
        self._times += 1


def _is_there() -> bool:
    """Whether somebody sits at a terminal that is ours to read."""
    try:
        return sys.stderr.isatty() and os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


@contextmanager
def _letters() -> Iterator[Callable[[float], str]]:
    """Reads letters without Enter: the next one within so many seconds, or nothing."""
    import termios
    import tty

    before = termios.tcgetattr(0)
    # Not TCSAFLUSH, the default: it throws away what a quick hand has typed already.
    tty.setcbreak(0, termios.TCSADRAIN)

    def letter_within(seconds: float) -> str:
        ready, _, _ = select.select([0], [], [], seconds)
        return os.read(0, 1).decode(errors="replace").lower() if ready else ""

    try:
        yield letter_within
    finally:
        with contextlib.suppress(termios.error):
            termios.tcsetattr(0, termios.TCSADRAIN, before)
