"""What is on disk of each attempt while it runs: enough to end it, and to tell how it ended.

A record lies in the spool beside the copy of the console, as those of `runyard run` do. It goes
when the server knows everything; what a crash leaves, the keeper, the next agent on this machine or
the server takes up.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket

from runyard.node.system import processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Of every record on disk: more than any has, so that a later one covers an earlier one.
_SIZE = 2000


class Record:
    """One attempt's record and the copy of its console.

    `survives_machine`: wait until it is on the disk; it is then there after a new start too.
    """

    def __init__(
        self, path: str, content: dict[str, Any], *, survives_machine: bool = False
    ) -> None:
        self.path = path
        self.content = content
        self._survives_machine = survives_machine
        self._file = -1

    @property
    def copy(self) -> str:
        return self.path.removesuffix(".json") + ".log"

    @property
    def token(self) -> str:
        """What tells it from other attempts of its run."""
        return self.path.removesuffix(".json").rpartition("-")[2]

    def write(self, **more: object) -> None:
        """Whole or not at all: one call of the kernel, padded over what was there before."""
        self.content.update(more)
        # A full disk must not end the program: the server is then told directly or not at all.
        with contextlib.suppress(OSError):
            if self._file < 0:
                self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            os.pwrite(self._file, json.dumps(self.content).ljust(_SIZE).encode(), 0)
            if self._survives_machine:
                os.fsync(self._file)

    def remove(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        for path in (self.path, self.copy):
            with contextlib.suppress(OSError):
                os.unlink(path)


def read_all(spool: str) -> list[Record]:
    """The records that agents of this machine wrote."""
    here = socket.gethostname()
    all_records = []
    with contextlib.suppress(OSError):
        for name in sorted(os.listdir(spool)):
            if not name.endswith(".json"):
                continue
            with contextlib.suppress(OSError, ValueError):
                with open(f"{spool}/{name}", encoding="utf-8") as file:
                    content = json.load(file)
                if isinstance(content, dict) and "agent" in content and content["host"] == here:
                    all_records.append(Record(f"{spool}/{name}", content))
    return all_records


def is_orphan(content: dict[str, Any]) -> bool:
    """Whether neither its agent nor its keeper lives; we ourselves do not count."""
    if content.get("boot") != processes.boot_id():
        return True
    return not any(_lives(content, who) for who in ("pid", "keeper"))


def _lives(content: dict[str, Any], who: str) -> bool:
    if content.get(f"{who}_began") is None or content[who] == os.getpid():
        return False
    return processes.start_time(content[who]) == str(content[f"{who}_began"])
