"""A sweep at a server that is not ours, and what its agent knows of it (`cloud_channel`)."""

from __future__ import annotations

import os

from runyard.node.link.place import ServerAddress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_DEFAULT_COMMAND = ["${env}", "${interpreter}", "${program}", "${args}"]


class Cloud:
    """One sweep elsewhere: in place of `Place`, for everything that wants to know the server."""

    def __init__(self, url: str, sweep: str, command: list[Any] | None) -> None:
        self.url = url
        self.entity, self.project, self.sweep = sweep.split("/")
        self.command = command or _DEFAULT_COMMAND
        self.address: ServerAddress | None = None
        self.is_over = False
        self.trouble: str | None = None
        self.our_key: int | None = None
        self.numbers: dict[str, int] = {}
        self.finished = self.failed = 0
        self.busy_seconds = 0.0
        self.saves = False

    def make_spool(self, home: str) -> str:
        """Of each server elsewhere: who comes after a crash tells the one that it concerns."""
        host = self.url.partition("://")[2].replace("/", "_")
        spool = f"{home}/elsewhere/{host}"
        os.makedirs(spool, mode=0o700, exist_ok=True)
        return spool

    def find(self) -> ServerAddress | None:
        return self.address

    def is_silent(self) -> None:
        """Nothing that could be done about it from here."""

    def hand(self, key: str) -> None:
        """It is one of ours after all, and has made a key for us."""
        assert self.address is not None
        self.address.use(key)

    def is_outdated(self, token: str) -> bool:
        """Whether a request was refused for that key: the one that was found for it is left."""
        assert self.address is not None
        is_handed = self.address.handed != self.address.key and token == self.address.token
        self.address.use(self.address.key)
        return is_handed

    def is_opened(self, answer: dict[str, Any]) -> None:
        self.address = ServerAddress(
            {"url": self.url, "key": answer["key"], "hostname": ""}, "elsewhere"
        )
        self.address.is_elsewhere = True
        self.address.use(answer["key"])
        self.our_key = answer["ours"]

    def note_end(self, is_good: bool, seconds: float) -> None:
        self.finished += is_good
        self.failed += not is_good
        self.busy_seconds += seconds if is_good else 0.0

    def is_too_late(self, seconds_left: float | None) -> bool:
        """Whether a trial that begins now could neither finish nor be saved.

        Our own server knows it of a sweep; here nobody knows more than this agent has seen.
        """
        if seconds_left is None or self.saves or not self.finished:
            return False
        return self.busy_seconds / self.finished > seconds_left

    def told_of(self, command: dict[str, Any], attempt: int) -> dict[str, Any]:
        """A command of W&B's in the words of our server."""
        run_id = command["run_id"]
        values = {name: argument["value"] for name, argument in command["args"].items()}
        number = self.numbers.setdefault(run_id, len(self.numbers) + 1)
        return {
            "do": "run",
            "trial": {"number": number, "id": run_id, "name": run_id, "values": values},
            "attempt": attempt,
            "run": {
                "key": f"{self.entity}/{self.project}/{run_id}",
                "id": run_id,
                "name": "",  # It has one there.
                "entity": self.entity,
                "project": self.project,
                "folder": None,
            },
            "command": self.command,
            "program": command.get("program"),
            "args": values,
            "sweep": self.sweep,
        }
