"""What the trials of a sweep print, merged, each line marked with its trial."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from runyard.cli.connect import server
from runyard.cli.output import say
from runyard.cli.streams import print_marked
from runyard.client.api import Api, RunDetail
from runyard.client.sweeps import Sweep
from runyard.errors import NotFoundError, ServerError

_LOOK_EVERY = 0.5
_OPEN = ("running", "paused")
Printer = Callable[[str, list[str]], None]


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


class TrialConsoles:
    """The consoles of a sweep's trials, or of those in some job of Slurm's, as they grow."""

    def __init__(
        self, sweep: int, is_wanted: Callable[[str | None], bool] = lambda _job: True
    ) -> None:
        self._sweep = sweep
        self._is_wanted = is_wanted
        self._readers: dict[str, _Reader] = {}
        self._ended = set[str]()

    @property
    def has_any(self) -> bool:
        return any(reader.after for reader in self._readers.values())

    def read(
        self, api: Api, show: Printer, lines: int | None = None, *, follow: bool = True
    ) -> bool:
        """Show what is new; whether a trial still runs."""
        running = False
        for trial in api.sweeps.trials(self._sweep):
            if trial["run"] is None or trial["id"] in self._ended:
                continue
            if not self._is_wanted(trial["job"]):
                continue
            if trial["id"] not in self._readers:
                try:
                    self._readers[trial["id"]] = _Reader(trial["name"], api.run(trial["id"]))
                except NotFoundError:  # Deleted.
                    self._ended.add(trial["id"])
                    continue
            reader = self._readers[trial["id"]]
            found = reader.read(api)
            if trial["state"] == "running":
                running = True
            elif not follow or trial["state"] not in ("waiting", "paused"):
                found += reader.finish()
                self._ended.add(trial["id"])
            show(reader.name, found if lines is None else found[-lines:] if lines else [])
        return running

    def finish(self, show: Printer) -> None:
        """What is left of lines that have no end."""
        for reader in self._readers.values():
            show(reader.name, reader.finish())


def print_sweep_logs(api: Api, sweep: Sweep, *, follow: bool, lines: int | None, raw: bool) -> int:
    def show(name: str, new: list[str]) -> None:
        print_marked(name, new, raw=raw)

    consoles = TrialConsoles(sweep["key"])
    while True:
        try:
            # Before the trials: what is over now has nothing new after they are read.
            is_open = api.sweeps.sweep(sweep["key"])["state"] in _OPEN
            running = consoles.read(api, show, lines, follow=follow)
        except ServerError:
            if not follow:
                raise
            api = server()
            running = is_open = True
        if not follow or not (is_open or running):
            if not consoles.has_any:
                say(f"no trial of sweep {sweep['id']} has printed anything yet{_jobs(api, sweep)}")
            return 0
        lines = None
        time.sleep(_LOOK_EVERY)


def _jobs(api: Api, sweep: Sweep) -> str:
    """A job that fails before its agent starts leaves its words in its own log."""
    jobs = api.jobs.jobs(sweep=sweep["key"], limit=1)
    return f"; `runyard logs {jobs[0]['job_id']}` prints its job's log" if jobs else ""
