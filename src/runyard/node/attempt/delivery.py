"""An attempt's console and end on their way to the server, from the copy on disk."""

from __future__ import annotations

import time

from runyard.node.attempt import records
from runyard.node.system.loop import Loop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from runyard.node.attempt.records import Record
    from runyard.node.link.channel import Answer, Channel
    from runyard.node.system.loop import Timer

# How often what a program printed is sent.
SHIP_EVERY = 1.0
# After the program's end, something it left behind may hold its output open: do not wait for that.
LINGER_SECONDS = 0.5
_SEND_AT_ONCE = 1 << 20
_LEFTOVER_SECONDS = 30.0
_KILLED = -9


class ConsoleShipper:
    """The console of one attempt: sends what the copy has and the server has not."""

    def __init__(self, channel: Channel, record: Record, on_stop: Callable[[], None]) -> None:
        content = record.content
        self._channel = channel
        self._path = f"/api/runs/{content['run']}/attempts/{content['number']}/console"
        self._copy = record.copy
        self._on_stop = on_stop
        self._sent = 0
        self._is_sending = False
        self._is_over = False
        self._is_stopped = False
        self.heard_at = time.monotonic()
        self._on_done: Callable[[], None] | None = None

    def ship(self) -> None:
        """Send what is new."""
        if self._is_sending or self._is_over:
            return
        data = self._read()
        if data:
            self._send(data)
        elif self._on_done is not None:
            done, self._on_done, self._is_over = self._on_done, None, True
            done()

    def finish(self, on_done: Callable[[], None]) -> None:
        """Nothing more comes: send the rest, then call."""
        if self._is_over:  # The run was deleted.
            on_done()
            return
        self._on_done = on_done
        self.ship()

    def ask_stored(self) -> None:
        """Learn what the server has of it; also a sign of life."""
        if not (self._is_sending or self._is_over):
            self._send(b"")

    def hurry(self, channel: Channel) -> None:
        """Send the rest on another channel, whatever is still under way on the own one."""
        data = b"" if self._is_over else self._read()
        if data:
            channel.post(f"{self._path}?offset={self._sent}", data, self._note)

    def _note(self, answer: Answer) -> None:
        if answer.is_good:
            self._sent = max(self._sent, answer.json()["stored"])

    def _send(self, data: bytes) -> None:
        self._is_sending = True
        self._channel.post(f"{self._path}?offset={self._sent}", data, self._on_answer)

    def _on_answer(self, answer: Answer) -> None:
        self._is_sending = False
        self.heard_at = time.monotonic()
        if not answer.is_good:  # The run was deleted: nobody wants it.
            self._is_over = True
            if self._on_done is not None:
                self._on_done()
            return
        content = answer.json()
        # The server says what it has: that is where to go on, whatever was sent before.
        self._note(answer)
        if content.get("stop") and not self._is_stopped:
            self._is_stopped = True
            self._on_stop()
        self.ship()

    def _read(self) -> bytes:
        try:
            with open(self._copy, "rb") as file:
                file.seek(self._sent)
                return file.read(_SEND_AT_ONCE)
        except OSError:
            return b""


class Execution:
    """One attempt as it is recorded on disk and told to the server, whoever runs its program.

    The server hears of the console and of the end; when it has both, the record goes and `on_told`
    is called.
    """

    def __init__(
        self,
        loop: Loop,
        channel: Channel,
        record: Record,
        on_stop: Callable[[], None],
        on_told: Callable[[], None] = lambda: None,
    ) -> None:
        self.record = record
        self.console = ConsoleShipper(channel, record, on_stop)
        self._loop = loop
        self._on_told = on_told
        self._timer: Timer | None = None
        self._untold = {"console", "end"}

    def ship_soon(self) -> None:
        """The program has printed something."""
        if self._timer is None or not self._timer.is_due:
            self._timer = self._loop.after(SHIP_EVERY, self.console.ship)

    def finish_console(self, then: Callable[[], None] = lambda: None) -> None:
        """Nothing more is printed: send the rest, then call."""
        if self._timer is not None:
            self._timer.cancel()

        def is_sent() -> None:
            self.is_told("console")
            then()

        self.console.finish(is_sent)

    def is_told(self, part: str) -> None:
        """The server has the console, or the end."""
        self._untold.discard(part)
        if not self._untold:
            self.record.remove()
            self._on_told()


def end_message(content: dict[str, Any]) -> dict[str, Any]:
    """How an attempt ended, for the server. One without an end was cut off with its node."""
    return {
        "run": content.get("run"),
        "trial": content["trial"],
        "attempt": content["number"],
        "exit_code": content.get("exit_code", _KILLED),
        "cause": content["cause"] if "exit_code" in content else "node",
        "ended_at": content.get("ended_at", time.time()),
        "saved": _has_saved(content),
        "usage": content.get("usage"),
    }


def _has_saved(content: dict[str, Any]) -> bool:
    """Whether it wrote a checkpoint: whoever was cut off after one has got on."""
    from runyard.node.attempt.checkpoints import has_saved  # Not before something has ended.

    folder = content.get("checkpoints")
    return folder is not None and has_saved(folder, content.get("begun_at", 0.0))


def deliver_leftovers(spool: str, open_channel: Callable[[Loop], Channel]) -> None:
    """Tell the server of attempts whose agent is dead. What it cannot be told stays."""
    left = [record for record in records.read_all(spool) if records.is_orphan(record.content)]
    if not left:
        return
    loop = Loop()
    channel = open_channel(loop)
    for record in left:
        _deliver(loop, channel, record)
    end = time.monotonic() + _LEFTOVER_SECONDS
    while not channel.is_idle and time.monotonic() < end:
        loop.turn(end - time.monotonic())
    channel.drop()
    loop.close()


def _deliver(loop: Loop, channel: Channel, record: Record) -> None:
    execution = Execution(loop, channel, record, on_stop=lambda: None)

    def on_answer(answer: Answer) -> None:
        if answer.is_good or answer.status in (404, 409):
            execution.is_told("end")

    def tell_end() -> None:
        path = f"/api/agents/{record.content['agent']}/ends"
        channel.post(path, end_message(record.content), on_answer)

    execution.console.ask_stored()
    execution.finish_console(tell_end)
