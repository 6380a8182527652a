"""The smallest agent there can be: claims over HTTP, runs a shell for each trial, tells the end.

    python small_agent.py HOME SWEEP FOLDER

A trial takes a folder of its own while it runs: if it is there already, it runs twice at once.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from runyard.client.discover import ensure_server
from runyard.client.sweeps import SweepApi
from runyard.errors import RunyardError
from runyard.home import Home
from runyard.shapes.sweeps import Claimed

PROGRAM = 'mkdir "$1/now/$2" || { echo "$2" >> "$1/twice"; exit 9; }; sleep "$3"; rmdir "$1/now/$2"'
Result = TypeVar("Result")


class Yard:
    """The server, wherever it is; it may be killed at any moment."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._api: SweepApi | None = None

    def ask(self, question: Callable[[SweepApi], Result]) -> Result:
        while True:
            try:
                if self._api is None:
                    self._api = ensure_server(self._home).api.sweeps
                return question(self._api)
            except RunyardError as error:
                if "409" in str(error):
                    raise
                self._api = None
                time.sleep(0.1)


def main(home: str, sweep: int, folder: str) -> None:
    yard = Yard(Home(Path(home)))
    token = secrets.token_hex(8)
    agent = yard.ask(
        lambda api: api.begin_agent(sweep, token=token, host="here", pid=os.getpid(), slots=1)
    )["agent"]
    while True:
        token = secrets.token_hex(8)
        claimed = yard.ask(lambda api, token=token: api.claim(agent, token=token, wait=2))  # type: ignore[misc]
        if claimed["do"] == "exit":
            return
        if claimed["do"] == "run":
            run(yard, agent, claimed, folder)


def run(yard: Yard, agent: int, claimed: Claimed, folder: str) -> None:
    number, attempt = claimed["trial"]["number"], claimed["attempt"]
    seconds = f"{0.05 + number % 5 / 20:.2f}"
    child = subprocess.Popen(["sh", "-c", PROGRAM, "sh", folder, claimed["trial"]["id"], seconds])
    while child.poll() is None:
        told = yard.ask(lambda api: api.renew(agent, [{"trial": number, "attempt": attempt}]))
        if told["stop"]:
            child.kill()
        time.sleep(0.1)
    code, ended = child.wait(), time.time()
    yard.ask(lambda api: api.end(agent, number, attempt, exit_code=code, ended_at=ended))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
