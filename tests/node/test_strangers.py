"""Ranks meet at a port that anybody on the network can reach: strangers there end nothing."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.node.terminals import until

# Stands for srun, which only a cluster has: starts the task of rank 0 here, and notes what it was
# called with.
SRUN = """\
#!/bin/sh
printf '%s\\n' "$@" > "$CALLED.part" && mv "$CALLED.part" "$CALLED"
while [ "${1#--}" != "$1" ]; do shift; done
SLURM_PROCID=0 exec "$@"
"""
WAITS = """\
import os, sys, time
while not os.path.exists(sys.argv[1]):
    time.sleep(0.02)
print("through")
"""
SETTINGS = {"form": "srun", "nodes": 1, "tasks": 1, "ports": None}


class Attempt:
    """`ranks` with one real rank, whose program waits for a file."""

    def __init__(self, folder: Path) -> None:
        self._may_end, called = folder / "may-end", folder / "called"
        srun = folder / "srun"
        srun.write_text(SRUN)
        srun.chmod(srun.stat().st_mode | stat.S_IXUSR)
        self.process = subprocess.Popen(
            [
                sys.executable, "-m", "runyard.node.ranks.leader", json.dumps(SETTINGS), "0",
                sys.executable, "-c", WAITS, str(self._may_end),
            ],
            env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "CALLED": str(called)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        until(lambda: called.exists() or self.process.poll() is not None, "srun to be called", 180)
        (meets,) = (line for line in called.read_text().splitlines() if line.startswith("{"))
        self._hub = "127.0.0.1", json.loads(meets)["hub"]

    def connect(self) -> socket.socket:
        return socket.create_connection(self._hub, timeout=180)

    def end(self) -> tuple[int, str, str]:
        self._may_end.touch()
        out, err = self.process.communicate(timeout=180)
        return self.process.returncode, out, err


@pytest.fixture
def attempt(tmp_path: Path) -> Iterator[Attempt]:
    attempt = Attempt(tmp_path)
    yield attempt
    attempt.process.kill()
    attempt.process.communicate()


@pytest.mark.parametrize(
    "line",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x00\xff\xfe\n",
        b"[1]\n",
        b"null\n",
        b'{"token": "guessed", "rank": 0}\n',
        b'{"rank": 0}\n',
        b'{"token": 1e999}\n',
        b"[" * 2000 + b"\n",
        b"x" * 100_000,
    ],
)
def test_a_stranger_is_let_go_and_the_attempt_goes_on(attempt: Attempt, line: bytes) -> None:
    with attempt.connect() as stranger:
        stranger.sendall(line)
        assert not hears(stranger)
    assert attempt.process.poll() is None
    assert attempt.end() == (0, "through\n", "")


def test_a_silent_stranger_holds_nobody_up(attempt: Attempt) -> None:
    with attempt.connect(), attempt.connect() as half:
        half.sendall(b'{"token": ')
        assert attempt.end() == (0, "through\n", "")


def test_a_silent_stranger_is_let_go_after_a_while(attempt: Attempt) -> None:
    with attempt.connect() as silent:
        assert not hears(silent)
    assert attempt.end() == (0, "through\n", "")


def hears(stranger: socket.socket) -> bytes:
    """Until the other end closes the connection."""
    try:
        return stranger.recv(1)
    except ConnectionResetError:
        return b""
