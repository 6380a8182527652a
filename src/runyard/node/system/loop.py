"""One thread that waits for everything at once: pipes, sockets, children, signals, times.

A single thread may fork without fear, sixteen slots cost no more than one, and a signal is an
event like any other.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class Timer:
    """A call that is to be made later, unless it is cancelled."""

    __slots__ = ("_call", "when")

    def __init__(self, when: float, call: Callable[[], None]) -> None:
        self.when = when
        self._call: Callable[[], None] | None = call

    def cancel(self) -> None:
        self._call = None

    @property
    def is_due(self) -> bool:
        return self._call is not None

    def fire(self) -> None:
        call, self._call = self._call, None
        if call is not None:
            call()


class Loop:
    """`watch` descriptors, set times with `after`, and `turn` until there is nothing to do."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._timers: list[Timer] = []
        self._signals: dict[int, Callable[[int], None]] = {}
        self._woken: int | None = None

    def watch(self, handle: int, events: int, call: Callable[[int], None]) -> None:
        """Call with the events that happened, until `forget`; a second call replaces the first."""
        try:
            self._selector.modify(handle, events, call)
        except KeyError:
            self._selector.register(handle, events, call)

    def forget(self, handle: int) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(handle)

    def after(self, seconds: float, call: Callable[[], None]) -> Timer:
        timer = Timer(time.monotonic() + seconds, call)
        self._timers.append(timer)
        return timer

    def on_signal(self, number: int, call: Callable[[int], None]) -> None:
        """Take a signal as an event. Only ever in the main thread."""
        if self._woken is None:
            self._woken, written = os.pipe()
            os.set_blocking(self._woken, False)
            os.set_blocking(written, False)
            signal.set_wakeup_fd(written, warn_on_full_buffer=False)
            self.watch(self._woken, READ, lambda _events: None)  # It ends the wait.
        self._signals[number] = call
        # The handler itself does nothing: the byte in the pipe does.
        signal.signal(number, lambda *_: None)

    def turn(self, longest: float = 60.0) -> None:
        """Wait for the next events and handle them."""
        # A few a slot: a list is as good as a heap, and one file less.
        self._timers = [timer for timer in self._timers if timer.is_due]
        first = min((timer.when for timer in self._timers), default=float("inf"))
        pause = min(longest, max(0.0, first - time.monotonic()))
        ready = self._selector.select(pause)
        # Signals first: who was asked to begin nothing more may see a program's end in this turn.
        self._hear_signals()
        for key, events in ready:
            # What was handled before it may have ended this one.
            if self._is_watched(key.fd, key.data):
                key.data(events)
        now = time.monotonic()
        for timer in sorted(self._timers, key=lambda timer: timer.when):
            if timer.when <= now:
                timer.fire()

    def close(self) -> None:
        self._selector.close()

    def _is_watched(self, handle: int, call: object) -> bool:
        key = self._selector.get_map().get(handle)
        return key is not None and key.data is call

    def _hear_signals(self) -> None:
        if self._woken is None:
            return
        with contextlib.suppress(BlockingIOError):
            for number in os.read(self._woken, 4096):
                call = self._signals.get(number)
                if call is not None:
                    call(number)
