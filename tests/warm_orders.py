"""Asks the process of tests/warm_server.py for a process: what is sent, and what comes back.

Used by the tests, and by the commands that were forked from it when they start a server.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

# Read once, by Python or by modules that are loaded already.
_READ_AT_START = (
    "PYTHON", "LANG", "LC_", "LD_", "TZ", "COVERAGE", "RUNYARD_SCHEDULER_SECONDS",
    "RUNYARD_LEASE_SECONDS", "NO_COLOR", "FORCE_COLOR", "TERM",
)  # fmt: skip
SERVER = [sys.executable, "-m", "runyard.server"]


def fixed(environment: Mapping[str, str]) -> dict[str, str]:
    """What a process that is forked cannot have otherwise than the one that it is forked from."""
    return {name: value for name, value in environment.items() if name.startswith(_READ_AT_START)}


class Orders:
    """Where orders are taken, and what is fixed there."""

    def __init__(self, address: str, environment: Mapping[str, str]) -> None:
        self._address = address
        self._fixed = fixed(environment)

    def fits(self, environment: Mapping[str, str]) -> bool:
        return self._fixed == fixed(environment)

    def send(
        self,
        module: str,
        words: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        files: Mapping[int, int],
    ) -> socket.socket:
        """`files`: those of ours that it gets, by the number that it has them under."""
        os.umask(umask := os.umask(0o077))
        order = {
            "module": module,
            "words": words,
            "environment": dict(environment),
            "folder": str(folder),
            "umask": umask,
            "files": list(files),
        }
        data = json.dumps(order).encode()
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(self._address)
        socket.send_fds(connection, [len(data).to_bytes(8, "big")], list(files.values()))
        connection.sendall(data)
        return connection

    def start_server(
        self, command: Sequence[str], folder: Path, crash_log: IO[bytes], ready: int
    ) -> subprocess.Popen[bytes] | None:
        """As `start` of runyard.client.server_process; None where it takes a fresh process."""
        from runyard.client.server_process import server_environment

        environment = server_environment()
        is_measured = any(name.startswith("COVERAGE") for name in environment)
        if list(command[:3]) != SERVER or is_measured or not self.fits(environment):
            return None
        log = crash_log.fileno()
        with open(os.devnull, "rb") as nothing:  # noqa: PTH123
            files = {0: nothing.fileno(), 1: log, 2: log, ready: ready}
            connection = self.send("runyard.server", command[3:], environment, folder, files)
        return WarmServer(command, connection)


class WarmServer(subprocess.Popen[bytes]):
    """A server that was forked, as its starter sees it."""

    def __init__(self, command: Sequence[str], connection: socket.socket) -> None:
        self.args = command
        self.returncode: int | None = None
        self._connection = connection
        self.pid = int.from_bytes(receive(connection), "big")

    def poll(self) -> int | None:
        if self.returncode is None:
            self._connection.settimeout(0.0)
            try:
                self.returncode = int.from_bytes(receive(self._connection), "big", signed=True)
            except BlockingIOError:
                return None
        return self.returncode

    def __del__(self) -> None:
        self._connection.close()


def receive(connection: socket.socket) -> bytes:
    """A process's number, or its exit code."""
    data = connection.recv(4, socket.MSG_WAITALL)
    assert len(data) == 4, "the process that runyard is forked from is gone"
    return data
