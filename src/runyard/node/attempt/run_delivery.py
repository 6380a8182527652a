"""What the server hears of an attempt of `runyard run`: that it begins, its console, its end.

Nothing of the program waits for the server. One that is away is waited for, and started again where
that is possible (`link/place.py`).
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from typing import Any

from runyard.client.api import Api
from runyard.node.attempt.delivery import SHIP_EVERY, Execution
from runyard.node.attempt.records import Record
from runyard.node.link.channel import DELIVERY_SECONDS, Answer, Channel
from runyard.node.link.place import Place
from runyard.node.system.loop import Loop
from runyard.node.system.processes import launch
from runyard.shapes.runs import Run

_SIGN_OF_LIFE_EVERY = 20.0


class RunDelivery:
    """One attempt's way to the server. `begin`, `watch` while the program runs, `finish`."""

    def __init__(self, api: Api, run: Run, home: str) -> None:
        self._api = api
        self._run = run
        self._home = home
        self._number = 0
        self.trouble: str | None = None

    def begin(self, token: str) -> dict[str, Any]:
        """Announce the attempt; what its record says of it."""
        host = socket.gethostname()
        self._number = self._api.begin_attempt(self._run, host, os.getpid(), token)
        return {"run": self._run["key"], "number": self._number, "host": host, "pid": os.getpid()}

    def cannot_begin(self, exit_code: int) -> None:
        """Its program could not be started."""
        self._api.end_attempt(self._run, self._number, exit_code, time.time())

    def watch(self, loop: Loop, record: Record, on_stop: Callable[[], None]) -> None:
        """Send what the program prints, and a sign of life where it prints nothing."""
        self._loop = loop
        self._channel = Channel(loop, Place(self._home, _start_beside_us))
        self._execution = Execution(loop, self._channel, record, on_stop)
        loop.after(SHIP_EVERY, self._ship)

    def _ship(self) -> None:
        console = self._execution.console
        if time.monotonic() - console.heard_at >= _SIGN_OF_LIFE_EVERY:
            console.ask_stored()
        else:
            console.ship()
        self._loop.after(SHIP_EVERY, self._ship)

    def finish(self, exit_code: int, ended_at: float) -> Run | None:
        """Send the rest and the end. None if the server could not be told in time."""
        answers: list[Answer] = []
        path = f"/api/runs/{self._run['key']}/attempts/{self._number}/end"
        end = {"exit_code": exit_code, "ended_at": ended_at}
        self._execution.finish_console(lambda: self._channel.post(path, end, answers.append))
        last = time.monotonic() + DELIVERY_SECONDS
        while not answers and time.monotonic() < last:
            self._loop.turn(last - time.monotonic())
        if answers and answers[0].is_good:
            self._execution.is_told("end")
            run: Run = answers[0].json()
            return run
        trouble = answers[0] if answers else self._channel.trouble
        self.trouble = "the server does not answer" if trouble is None else trouble.error
        return None


def _start_beside_us(words: list[str]) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    launch(words, os.environ, None, nothing)
    os.close(nothing)
