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
import signal
import struct
import termios
import threading
from pathlib import Path

# After the program's end, something it left behind may hold its output open: do not wait for that.
_LINGER_SECONDS = 0.5
_READ_AT_ONCE = 1 << 16


class Console:
    """The output of one program. `open`, hand the ends to the program, `start`, `finish`."""

    def __init__(self, copy: Path, stdout: int = 1, stderr: int = 2) -> None:
        self._copy_path = copy
        self._targets = {"stdout": stdout, "stderr": stderr}
        self._sources: dict[int, int] = {}
        self._program_ends: list[int] = []
        self._terminals: list[int] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._relay, name="console", daemon=True)
        self.trouble: OSError | None = None
        self._copy = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def open(self) -> tuple[int, int]:
        """The descriptors to give to the program as its stdout and stderr."""
        stdout = self._channel(self._targets["stdout"])
        if _are_same(self._targets["stdout"], self._targets["stderr"]):
            return stdout, stdout  # One channel keeps the order of what is written.
        return stdout, self._channel(self._targets["stderr"])

    def start(self) -> None:
        """The program has its ends: let go of them and begin."""
        for end in self._program_ends:
            os.close(end)
        if self._terminals:
            signal.signal(signal.SIGWINCH, lambda *_: self._fit_terminals())
        self._thread.start()

    def finish(self) -> None:
        """The program ended: pass on what is still in the channels."""
        self._ended.set()
        self._thread.join()
        os.close(self._copy)

    def abandon(self) -> None:
        """The program never started."""
        for handle in (*self._program_ends, *self._sources, self._copy):
            os.close(handle)
        self._copy_path.unlink(missing_ok=True)

    def _channel(self, target: int) -> int:
        if os.isatty(target):
            source, end = pty.openpty()
            # Bytes go through as they are: the real terminal does its own translation.
            settings = termios.tcgetattr(end)
            settings[1] &= ~termios.OPOST
            termios.tcsetattr(end, termios.TCSANOW, settings)
            self._terminals.append(source)
            self._fit_terminals()
        else:
            source, end = os.pipe()
        os.set_inheritable(end, False)
        self._sources[source] = target
        self._program_ends.append(end)
        return end

    def _fit_terminals(self) -> None:
        for terminal in self._terminals:
            with contextlib.suppress(OSError):
                size = fcntl.ioctl(
                    self._sources.get(terminal, 1),
                    termios.TIOCGWINSZ,
                    struct.pack("HHHH", 0, 0, 0, 0),
                )
                fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)

    def _relay(self) -> None:
        with selectors.DefaultSelector() as waiting:
            for source in self._sources:
                waiting.register(source, selectors.EVENT_READ)
            while waiting.get_map():
                ready = waiting.select(_LINGER_SECONDS if self._ended.is_set() else 0.1)
                if not ready and self._ended.is_set():
                    break
                for key, _ in ready:
                    data = _read(key.fd)
                    if not data or not self._pass_on(self._sources[key.fd], data):
                        waiting.unregister(key.fd)
                        # The program notices on its next write, as it would without us.
                        self._terminals = [one for one in self._terminals if one != key.fd]
                        os.close(key.fd)
            for key in list(waiting.get_map().values()):
                os.close(key.fd)

    def _pass_on(self, target: int, data: bytes) -> bool:
        """Write to our own output and to the copy; says whether anybody still reads."""
        if self.trouble is None:
            try:
                _write_all(self._copy, data)
            except OSError as error:  # A full disk must not end the program.
                self.trouble = error
        try:
            _write_all(target, data)
        except OSError:
            return False
        return True


def _are_same(one: int, other: int) -> bool:
    try:
        first, second = os.fstat(one), os.fstat(other)
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
