"""The server, asked again and again while something goes on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from runyard.client.api import Api
from runyard.errors import ServerError

Answer = TypeVar("Answer")
_PAUSES = (0.1, 1.0, 3.0)


@dataclass
class Polling:
    """The server may be restarted, or die, between two questions: `connect` gives it anew."""

    api: Api
    connect: Callable[[], Api]
    seconds: float = 0.5

    def answers(self, question: Callable[[Api], Answer]) -> Iterator[Answer]:
        """Now, and again after each wait, without an end. What fails at first is raised."""
        yield question(self.api)
        while True:
            self.wait()
            yield self.ask(question)

    def ask(self, question: Callable[[Api], Answer]) -> Answer:
        for pause in _PAUSES:
            try:
                return question(self.api)
            except ServerError:
                time.sleep(pause)
                self.reconnect()
        return question(self.api)

    def reconnect(self) -> None:
        self.api = self.connect()

    def wait(self) -> None:
        time.sleep(self.seconds)
