"""Signals that ask a command to end, while an agent works for it."""

from __future__ import annotations

import signal
import subprocess
import time
from types import FrameType

from runyard.cli.output import say

_ASKS_TO_END = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Asked:
    """Signals that ask us to end: the first time the agent is asked, the second time it kills."""

    def __init__(self) -> None:
        self.number: int | None = None
        self.note = ""
        self._times = self._passed = 0

    def __enter__(self) -> Asked:
        self._before = {number: signal.signal(number, self._hear) for number in _ASKS_TO_END}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def pass_on(self, process: subprocess.Popen[bytes], sweep: str) -> None:
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

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        self.number = number
        self._times += 1
