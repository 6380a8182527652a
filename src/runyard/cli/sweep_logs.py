"""What the trials of a sweep print, merged, each line marked with its trial."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

from runyard.cli.connect import server
from runyard.cli.output import say
from runyard.client.api import Api, RunDetail
from runyard.client.sweeps import Sweep
from runyard.errors import NotFoundError, ServerError

_LOOK_EVERY = 0.5
_OPEN = ("running", "paused")


@dataclass
class _Reader:
    """How far one trial's console has been read."""

    name: str
    run: RunDetail
    after: int = 0
    rest: str = ""

    def read(self, api: Api) -> list[str]:
        """New whole lines."""
        text = self.rest
        while True:
            page = api.console(self.run, self.after)
            if page["next"] == self.after:
                break
            self.after = page["next"]
            text += page["text"]
        *lines, self.rest = text.split("\n")
        return lines

    def finish(self) -> list[str]:
        rest, self.rest = self.rest, ""
        return [rest] if rest else []


def print_sweep_logs(api: Api, sweep: Sweep, *, follow: bool, lines: int | None) -> int:
    readers: dict[str, _Reader] = {}
    ended = set[str]()
    while True:
        try:
            # Before the trials: what is over now has nothing new after they are read.
            is_open = api.sweeps.sweep(sweep["key"])["state"] in _OPEN
            running = False
            for trial in api.sweeps.trials(sweep["key"]):
                if trial["run"] is None or trial["id"] in ended:
                    continue
                if trial["id"] not in readers:
                    try:
                        readers[trial["id"]] = _Reader(trial["name"], api.run(trial["id"]))
                    except NotFoundError:  # Deleted.
                        ended.add(trial["id"])
                        continue
                reader = readers[trial["id"]]
                found = reader.read(api)
                if trial["state"] == "running":
                    running = True
                elif not follow or trial["state"] not in ("waiting", "paused"):
                    found += reader.finish()
                    ended.add(trial["id"])
                _print(reader.name, found if lines is None else found[-lines:] if lines else [])
        except ServerError:
            if not follow:
                raise
            api = server()
            running = is_open = True
        if not follow or not (is_open or running):
            if not any(reader.after for reader in readers.values()):
                say(f"no trial of sweep {sweep['id']} has printed anything yet")
            return 0
        lines = None
        time.sleep(_LOOK_EVERY)


def _print(name: str, lines: list[str]) -> None:
    sys.stdout.write("".join(f"{name}\t{line}\n" for line in lines))
    sys.stdout.flush()
