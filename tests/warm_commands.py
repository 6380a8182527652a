"""Runs `runyard WORDS ...` as a process of its own, forked from one that has its modules loaded.

The tests run a thousand commands, and most of what a command takes is to import itself. It is a
real process all the same: with its own number, environment, folder, streams, signals and end. Not
as in a fresh one are what /proc shows as its command line and first environment, and that modules
in its folder cannot come before its own. What Python itself reads of the environment when it starts
is compared, and where it differs, a fresh process is started.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

# Read once, by Python or by modules that are loaded already.
_READ_AT_START = (
    "PYTHON", "LANG", "LC_", "LD_", "TZ", "COVERAGE", "RUNYARD_SCHEDULER_SECONDS", "NO_COLOR",
    "FORCE_COLOR", "TERM",
)  # fmt: skip
_SERVER = Path(__file__).with_name("warm_server.py")


class _Warm:
    """The process that is forked."""

    def __init__(self) -> None:
        # Not that of the first test that comes: it may have changed them for itself.
        self._fixed = _OF_THIS_PROCESS
        self._folder = tempfile.TemporaryDirectory(prefix="warm-")
        self._address = f"{self._folder.name}/orders"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self._address)
            listener.listen(64)
            # It ends when its input is closed, and so with this process. Pipes, as commands get:
            # Python asks its streams what they are once. Nothing of a test is in its environment:
            # processes are told by theirs, and those of a state folder or a cluster are ended.
            self._process = subprocess.Popen(
                [sys.executable, str(_SERVER), str(listener.fileno())],
                env=self._fixed, cwd="/", pass_fds=[listener.fileno()],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip

    def is_gone(self) -> bool:
        return self._process.poll() is not None

    def fits(self, environment: Mapping[str, str]) -> bool:
        return self._fixed == _fixed(environment)

    def order(
        self, words: Sequence[str], environment: Mapping[str, str], folder: Path, files: list[int]
    ) -> socket.socket:
        os.umask(umask := os.umask(0o077))
        order = {
            "words": words,
            "environment": dict(environment),
            "folder": str(folder),
            "umask": umask,
        }
        data = json.dumps(order).encode()
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(self._address)
        socket.send_fds(connection, [len(data).to_bytes(8, "big")], files)
        connection.sendall(data)
        return connection

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()
        self._folder.cleanup()


_warm: _Warm | None = None
_starting = threading.Lock()


def run_warm(
    words: Sequence[str], environment: Mapping[str, str], folder: Path, stdin: str, timeout: float
) -> subprocess.CompletedProcess[str] | None:
    """As subprocess.run would; None where it takes a fresh process."""
    global _warm
    with _starting:
        if _warm is None or _warm.is_gone():
            _warm = _Warm()
            atexit.register(_warm.end)
        warm = _warm
    if not warm.fits(environment):
        return None
    with contextlib.ExitStack() as ends:
        read_in, write_in = os.pipe()
        feeding = ends.enter_context(os.fdopen(write_in, "wb", 0))
        outputs = [os.pipe(), os.pipe()]
        theirs = [read_in, *(end for _, end in outputs)]
        readers = [_Reader(ours) for ours, _ in outputs]
        with warm.order(words, environment, folder, theirs) as connection:
            for file in theirs:
                os.close(file)
            child = int.from_bytes(_receive(connection), "big")
            with contextlib.suppress(BrokenPipeError), feeding:
                feeding.write(stdin.encode())
            connection.settimeout(timeout)
            try:
                code = int.from_bytes(_receive(connection), "big", signed=True)
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


def _receive(connection: socket.socket) -> bytes:
    data = connection.recv(4, socket.MSG_WAITALL)
    assert len(data) == 4, "the process that runyard is forked from is gone"
    return data


def _fixed(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(_READ_AT_START)}


_OF_THIS_PROCESS = {
    name: value for name, value in _fixed(os.environ).items() if not name.startswith("RUNYARD_")
}
