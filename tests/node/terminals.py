"""A real terminal with a process on it, for tests that type."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType

PATIENCE = 180.0  # A guard against a hang, never a measure.
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.02, 2.0
_PATIENT_PAUSE = 0.3
RUNYARD = (sys.executable, "-m", "runyard")


def until(
    true: Callable[[], object], what: str | Callable[[], str], seconds: float = PATIENCE
) -> None:
    """Wait until something is so.

    What takes long to look at is looked at less often, and so is what has been waited for for long:
    on two cores, who only asks keeps those waiting who bring it about.
    """
    first = began = time.monotonic()
    end = first + seconds
    while not true():
        now = time.monotonic()
        if now > end:
            told = what if isinstance(what, str) else what()
            raise AssertionError(f"waited {seconds:.0f} s in vain for {told}")
        patient = min(_PATIENT_PAUSE, (now - first) / 60)
        time.sleep(min(_LONGEST_PAUSE, max(_SHORTEST_PAUSE, patient, 2 * (now - began))))
        began = time.monotonic()


class Terminal:
    """A pseudo terminal, and a process for which it is the controlling one."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        rows: int = 30,
        columns: int = 100,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._master, slave = pty.openpty()
        self.resize(rows, columns)
        self.seen = b""
        self.process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            env={**os.environ, **(env or {})},
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End everything that still runs on this terminal."""
        for group in groups_of_session(self.process.pid):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)
        self.process.wait(PATIENCE)
        self.hang_up()

    def hang_up(self) -> None:
        """As when the window is closed or the network is lost."""
        if self._master >= 0:
            os.close(self._master)
            self._master = -1

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def expect(self, pattern: str, seconds: float = PATIENCE) -> re.Match[str]:
        """Read until the pattern is seen; what was seen up to it does not count any more."""
        end = time.monotonic() + seconds
        while True:
            shown = self.seen.decode(errors="replace")
            found = re.search(pattern, shown)
            if found:
                self.seen = shown[found.end() :].encode()
                return found
            assert self._read(end), f"{pattern!r} did not come; seen: {shown!r}"

    def wait(self, seconds: float = PATIENCE) -> int:
        """Read to the end; how the process ended, as Python tells it."""
        end = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < end, f"it does not end; seen: {self.seen!r}"
            self._read(time.monotonic() + 0.05)
        while self._read(time.monotonic() + 0.05):
            pass
        return self.process.returncode

    def foreground_group(self) -> int:
        return os.tcgetpgrp(self._master)

    def _read(self, end: float) -> bool:
        readable, _, _ = select.select([self._master], [], [], max(0.0, end - time.monotonic()))
        if not readable:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:  # Nobody holds the other end any more.
            time.sleep(0.01)
            return False
        self.seen += data
        return bool(data)


def groups_of_session(session: int) -> list[int]:
    """The process groups of a session."""
    shown = subprocess.run(
        ["ps", "-A", "-o", "sess=,pgid="], capture_output=True, text=True, check=True
    ).stdout
    rows = (line.split() for line in shown.splitlines())
    return sorted({int(group) for found, group in rows if int(found) == session})


@contextlib.contextmanager
def started(
    *words: str, cwd: Path | None = None, pipe_input: bool = False
) -> Iterator[subprocess.Popen[bytes]]:
    """`runyard WORDS` in the background, in a session of its own; ended with the test."""
    process = subprocess.Popen(
        [*RUNYARD, *words],
        stdin=subprocess.PIPE if pipe_input else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        cwd=cwd,
    )
    try:
        yield process
    finally:
        for group in groups_of_session(process.pid):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)
        process.wait(PATIENCE)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
