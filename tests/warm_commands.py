"""Runs `runyard WORDS ...` as a process of its own, forked from one that has its modules loaded.

Servers that the tests or such commands start are forked from it, too.

The tests run a thousand commands, and most of what a command takes is to import itself. It is a
real process all the same: with its own number, environment, folder, streams, signals and end. Not
as in a fresh one are what /proc shows as its first environment and, of a command, as its command
line, and that modules in its folder cannot come before its own. What Python itself reads of the
environment when it starts is compared, and where it differs, a fresh process is started.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from runyard.client import server_process
from tests.warm_orders import Orders, fixed, receive

_SERVER = Path(__file__).with_name("warm_server.py")
# A server's command line is written over its parent's.
_LONGEST_COMMAND = 4000
_start_fresh = server_process.start


class _Warm:
    """The process that is forked."""

    def __init__(self) -> None:
        # Not that of the first test that comes: it may have changed them for itself.
        fixed = _OF_THIS_PROCESS
        self._folder = tempfile.TemporaryDirectory(prefix="warm-")
        self._address = f"{self._folder.name}/orders"
        self.orders = Orders(self._address, fixed)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self._address)
            listener.listen(64)
            # It ends when its input is closed, and so with this process. Pipes, as commands get:
            # Python asks its streams what they are once. Nothing of a test is in its environment:
            # processes are told by theirs, and those of a state folder or a cluster are ended.
            number = str(listener.fileno())
            self._process = subprocess.Popen(
                [sys.executable, str(_SERVER), number, self._address, " " * _LONGEST_COMMAND],
                env=fixed, cwd="/", pass_fds=[listener.fileno()],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip

    def is_gone(self) -> bool:
        return self._process.poll() is not None

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()
        self._folder.cleanup()


_warm: _Warm | None = None
_starting = threading.Lock()


def _find_orders() -> Orders:
    global _warm
    with _starting:
        if _warm is None or _warm.is_gone():
            _warm = _Warm()
            atexit.register(_warm.end)
        return _warm.orders


def start_warm_server(
    command: Sequence[str], folder: Path, crash_log: IO[bytes], ready: int
) -> subprocess.Popen[bytes]:
    """In the place of `start` of runyard.client.server_process."""
    warm = None
    if sys.platform == "linux":  # Elsewhere its command line could not be told.
        warm = _find_orders().start_server(command, folder, crash_log, ready)
    return warm or _start_fresh(command, folder, crash_log, ready)


def run_warm(
    words: Sequence[str], environment: Mapping[str, str], folder: Path, stdin: str, timeout: float
) -> subprocess.CompletedProcess[str] | None:
    """As subprocess.run would; None where it takes a fresh process."""
    orders = _find_orders()
    if not orders.fits(environment):
        return None
    with contextlib.ExitStack() as ends:
        read_in, write_in = os.pipe()
        feeding = ends.enter_context(os.fdopen(write_in, "wb", 0))
        outputs = [os.pipe(), os.pipe()]
        theirs = [read_in, *(end for _, end in outputs)]
        readers = [_Reader(ours) for ours, _ in outputs]
        files = dict(enumerate(theirs))
        with orders.send("runyard", words, environment, folder, files) as connection:
            for file in theirs:
                os.close(file)
            child = int.from_bytes(receive(connection), "big")
            with contextlib.suppress(BrokenPipeError), feeding:
                feeding.write(stdin.encode())
            connection.settimeout(timeout)
            try:
                code = int.from_bytes(receive(connection), "big", signed=True)
                out, err = (reader.text(timeout) for reader in readers)
            except TimeoutError:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
                raise subprocess.TimeoutExpired(["runyard", *words], timeout) from None
    return subprocess.CompletedProcess(["runyard", *words], code, out, err)


class _Reader(threading.Thread):
    """Reads a pipe to its end, which comes when nobody has it any more."""

    def __init__(self, file: int) -> None:
        super().__init__(daemon=True)
        self._file, self._read = file, b""
        self.start()

    def run(self) -> None:
        with os.fdopen(self._file, "rb") as pipe:
            self._read = pipe.read()

    def text(self, seconds: float) -> str:
        self.join(seconds)
        if self.is_alive():
            raise TimeoutError
        return self._read.decode().replace("\r\n", "\n").replace("\r", "\n")


_OF_THIS_PROCESS = {
    name: value for name, value in fixed(os.environ).items() if not name.startswith("RUNYARD_")
}
