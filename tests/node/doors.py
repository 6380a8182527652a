"""A door in a process of its own, as an agent opens it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator

from runyard.home import Home

DOOR = """
import os, sys
from runyard.node.link.relay import Door
door = Door(sys.argv[1])
door.open()
print(door.url, door.pid, flush=True)
sys.stdin.read()
"""


class OpenDoor:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        self.url, pid = process.stdout.readline().split()
        self.pid = int(pid)
        self.port = int(self.url.rpartition(":")[2])


@contextlib.contextmanager
def open_door(home: Home) -> Iterator[OpenDoor]:
    process = subprocess.Popen(
        [sys.executable, "-c", DOOR, str(home.path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with process:
        yield OpenDoor(process)
        process.kill()
