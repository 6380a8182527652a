"""What the trials of a sweep print, merged, each line marked with its trial."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from runyard.actions.events import Notice
from runyard.actions.watching.log_events import LogLines, LogsRequest
from runyard.actions.watching.polling import Polling
from runyard.client.api import Api
from runyard.client.sweeps import OPEN_STATES
from runyard.errors import NotFoundError, ServerError
from runyard.shapes.runs import RunDetail
from runyard.shapes.sweeps import Sweep


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
        self.is_running = False

    @property
    def has_any(self) -> bool:
        return any(reader.after for reader in self._readers.values())

    def read(
        self, api: Api, lines: int | None = None, *, follow: bool = True
    ) -> Iterator[tuple[str, list[str]]]:
        """New lines, by the trial's name; then `is_running` says whether a trial still runs."""
        self.is_running = False
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
            new = reader.read(api)
            if trial["state"] == "running":
                self.is_running = True
            elif not follow or trial["state"] not in ("waiting", "paused"):
                new += reader.finish()
                self._ended.add(trial["id"])
            yield reader.name, new if lines is None else new[-lines:] if lines else []

    def finish(self) -> Iterator[tuple[str, list[str]]]:
        """What is left of lines that have no end."""
        for reader in self._readers.values():
            yield reader.name, reader.finish()


def sweep_logs(
    request: LogsRequest, sweep: Sweep, api: Api, connect: Callable[[], Api], *, is_own: bool
) -> Iterator[LogLines | Notice]:
    polling, consoles, lines = Polling(api, connect), TrialConsoles(sweep["key"]), request.lines
    while True:
        try:
            # Before the trials: what is over now has nothing new after they are read.
            is_open = polling.api.sweeps.sweep(sweep["key"])["state"] in OPEN_STATES
            for name, new in consoles.read(polling.api, lines, follow=request.follow):
                yield LogLines(name, new, is_own)
        except ServerError:
            if not request.follow:
                raise
            polling.reconnect()
            consoles.is_running = is_open = True
        if not request.follow or not (is_open or consoles.is_running):
            if not consoles.has_any:
                nothing = f"no trial of sweep {sweep['id']} has printed anything yet"
                yield Notice(nothing + _jobs(polling.api, sweep))
            return
        lines = None
        polling.wait()


def _jobs(api: Api, sweep: Sweep) -> str:
    """A job that fails before its agent starts leaves its words in its own log."""
    jobs = api.jobs.jobs(sweep=sweep["key"], limit=1)
    return f"; `runyard logs {jobs[0]['job_id']}` prints its job's log" if jobs else ""
