"""A program's output, passed through as it comes, with a copy kept in a file.

Where our output is a terminal, the program gets a terminal too (a pseudo one), so progress bars and
colours stay as they are without runyard. Its input is left alone.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import pty
import select
import selectors
import struct
import termios
import threading
import time
from collections.abc import Callable

from runyard.node.attempt.delivery import LINGER_SECONDS

# The kernel tells the foreground job of a new window size, and that is the program, not us: look.
_LOOK_AT_SIZE_SECONDS = 0.2
_READ_AT_ONCE = 1 << 16
# A pseudo terminal hands out 4 KiB a time and, like a pipe, holds 64 KiB.
_READS_TO_EMPTY = 32


class Console:
    """The output of one program. `open`, hand the ends to the program, `start`, `finish`."""

    def __init__(self, copy: str, stdout: int = 1, stderr: int = 2) -> None:
        self._targets = {"stdout": stdout, "stderr": stderr}
        self._sources: dict[int, int] = {}
        self._program_ends: list[int] = []
        self._sizes: dict[int, bytes] = {}
        self._on_resize: Callable[[], None] = lambda: None
        self._thread = threading.Thread(target=self._relay, name="console", daemon=True)
        self.trouble: OSError | None = None
        self._copy = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._end_heard, self._end_told = os.pipe()

    def open(self) -> tuple[int, int]:
        """The descriptors to give to the program as its stdout and stderr."""
        stdout = self._channel(self._targets["stdout"])
        if _are_same(self._targets["stdout"], self._targets["stderr"]):
            return stdout, stdout  # One channel keeps the order of what is written.
        return stdout, self._channel(self._targets["stderr"])

    def start(self, on_resize: Callable[[], None]) -> None:
        """The program has its ends: let go of them and begin."""
        for end in self._program_ends:
            os.close(end)
        self._on_resize = on_resize
        self._thread.start()

    def finish(self) -> None:
        """The program ended: pass on what is still in the channels."""
        os.close(self._end_told)
        self._thread.join()
        os.close(self._end_heard)
        os.close(self._copy)

    def abandon(self) -> None:
        """The program never started."""
        pipe = (self._end_heard, self._end_told)
        for handle in (*self._program_ends, *self._sources, *pipe, self._copy):
            os.close(handle)

    def _channel(self, target: int) -> int:
        if os.isatty(target):
            source, end = pty.openpty()
            # Bytes go through as they are: the real terminal does its own translation.
            settings = termios.tcgetattr(end)
            settings[1] &= ~termios.OPOST
            termios.tcsetattr(end, termios.TCSANOW, settings)
            self._sizes[source] = b""
        else:
            source, end = os.pipe()
        self._sources[source] = target
        self._program_ends.append(end)
        self._fit_terminals()
        return end

    def _fit_terminals(self) -> bool:
        """Give our pseudo terminals the size of the real ones. Says whether any changed."""
        changed = False
        for source, before in self._sizes.items():
            with contextlib.suppress(OSError):
                size = fcntl.ioctl(
                    self._sources[source], termios.TIOCGWINSZ, struct.pack("4H", *[0] * 4)
                )
                if size != before:
                    fcntl.ioctl(source, termios.TIOCSWINSZ, size)
                    self._sizes[source] = size
                    changed = True
        return changed

    def _relay(self) -> None:
        with selectors.DefaultSelector() as waiting:
            for source in (*self._sources, self._end_heard):
                waiting.register(source, selectors.EVENT_READ)
            last = None
            while self._sources and (last is None or time.monotonic() < last):
                for key, _ in waiting.select(self._pause(last)):
                    if key.fd == self._end_heard:
                        waiting.unregister(key.fd)
                        last = time.monotonic() + LINGER_SECONDS
                    elif not self._pass_on(key.fd):
                        waiting.unregister(key.fd)
                        self._close(key.fd)
                if self._fit_terminals():
                    self._on_resize()
        for source in list(self._sources):
            self._empty(source)
            self._close(source)

    def _pause(self, last: float | None) -> float | None:
        if last is not None:
            return max(0.0, last - time.monotonic())
        return _LOOK_AT_SIZE_SECONDS if self._sizes else None

    def _empty(self, source: int) -> None:
        """Pass on what the program wrote before its end, though others may write on and on."""
        for _ in range(_READS_TO_EMPTY):
            readable, _, _ = select.select([source], [], [], 0)
            if not readable or not self._pass_on(source):
                return

    def _close(self, source: int) -> None:
        # Where nobody reads us any more, the program notices on its next write, as without us.
        os.close(source)
        del self._sources[source]
        self._sizes.pop(source, None)

    def _pass_on(self, source: int) -> bool:
        """Read, and write to the copy and our own output; says whether both ends are open."""
        data = _read(source)
        if self.trouble is None:
            try:
                _write_all(self._copy, data)
            except OSError as error:  # A full disk must not end the program.
                self.trouble = error
        try:
            _write_all(self._sources[source], data)
        except OSError:
            return False
        return bool(data)


def _are_same(handle: int, other: int) -> bool:
    try:
        first, second = os.fstat(handle), os.fstat(other)
    except OSError:
        return False
    return (first.st_dev, first.st_ino) == (second.st_dev, second.st_ino)


def _read(source: int) -> bytes:
    try:
        return os.read(source, _READ_AT_ONCE)
    except OSError as error:
        # A pseudo terminal whose other end is closed answers so: it is the end.
        if error.errno == errno.EIO:
            return b""
        raise


def _write_all(target: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(target, left) :]
        except BlockingIOError:
            select.select([], [target], [])
