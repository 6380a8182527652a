"""Work on a sweep on this machine until nothing is left to run, or somebody ends it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from runyard.actions.connect import open_server
from runyard.actions.events import Notice, Notify
from runyard.actions.sweeping.agent_process import NO_LIMITS, Limits, agent_command, working_folder
from runyard.actions.sweeping.elsewhere import SweepElsewhere, elsewhere_command
from runyard.actions.sweeping.halting import Halt, HaltRule
from runyard.actions.sweeping.job_log import JobLog, job_log_of
from runyard.actions.sweeping.slots import Slots
from runyard.actions.tracking import ProjectOptions, agent_variables
from runyard.actions.watching.failures import failures, is_list
from runyard.client.api import Api
from runyard.client.discover import find_server
from runyard.client.sweeps import OPEN_STATES
from runyard.errors import RunyardError
from runyard.home import Home, locate
from runyard.node.agent.options import DETACH
from runyard.shapes.sweeps import Sweep, Trial

LOOK_EVERY = 0.5
_STDERR = 2
_AT_ONCE = 1 << 16
_LAST_OUTPUT_SECONDS = 5.0
_MANY_FAILED = 101
_AWAY = "the server is away; what runs goes on"

Start = Callable[[], subprocess.Popen[bytes]]


@dataclass(frozen=True)
class WorkRequest:
    """A sweep, and how this machine works on it."""

    sweep: Sweep
    options: ProjectOptions
    slots: Slots
    limits: Limits = NO_LIMITS
    halt: HaltRule | None = None
    log: JobLog | None = None
    """Of a list; None: the one beside its trials."""


@dataclass(frozen=True)
class Attended:
    """How the waiting for an agent ended."""

    process: subprocess.Popen[bytes]
    signal: int | None = None
    """What asked it to end."""
    is_left: bool = False
    """It goes on in the background."""


class Attendant(Protocol):
    """Who waits for the agent: a terminal that draws and asks, or a program that only waits."""

    @property
    def output(self) -> int | None:
        """Where what the programs print is copied to, as it comes; None: it is not shown."""
        ...

    @property
    def draws(self) -> bool:
        """Whether progress is shown here; else the agent's own lines tell of it, on stderr."""
        ...

    def attend(self, start: Start, name: str, watch: SweepWatch | None) -> Attended:
        """Start the agent, and wait until it has ended or is left. To call `watch.look` now and
        then is the attendant's task; at another server's sweep there is nothing to look at."""
        ...


class Waiting:
    """Waits, and shows nothing."""

    output: int | None = None
    draws = False

    def attend(self, start: Start, name: str, watch: SweepWatch | None) -> Attended:
        del name
        process = start()
        while process.poll() is None:
            if watch is not None:
                watch.look_for_followers()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(LOOK_EVERY)
        return Attended(process)


@dataclass(frozen=True)
class Worked:
    """The sweep as it is then."""

    sweep: Sweep
    failures: Sequence[tuple[Trial, str]]
    seconds: float
    attended: Attended
    log: Path | None = None
    """A list's job log, where it was ours to write."""

    @property
    def is_open(self) -> bool:
        return self.sweep["state"] in OPEN_STATES

    def exit_code(self, limits: Limits) -> int:
        """As a command's: 128 and the signal that ended it; of a list, as GNU parallel has it, how
        many failed."""
        if self.attended.signal is not None:
            return 128 + self.attended.signal
        return self._failures(limits) or (1 if self.attended.process.returncode else 0)

    def _failures(self, limits: Limits) -> int:
        state, counts = self.sweep["state"], self.sweep["counts"]
        if self.is_open and limits.seconds is not None:
            return 0  # It did what it was asked for; the rest has a next time.
        if is_list(self.sweep):
            return min(counts["failed"], _MANY_FAILED) or (1 if state != "finished" else 0)
        return 1 if state == "failed" or not counts["finished"] else 0


def work(request: WorkRequest, attendant: Attendant, notify: Notify) -> Worked:
    """Where it is left in the background, the sweep is as it was seen last."""
    sweep, home = request.sweep, locate()
    folder = working_folder(sweep["folder"])
    variables = agent_variables(request.options, Path(sweep["folder"] or "."), notify)
    log_path = job_log_of(sweep, folder) if is_list(sweep) else None
    log = request.log
    if log_path is not None and log is None:
        log = JobLog(log_path)
        if not log.is_ours:
            notify(Notice(f"the job log {log_path} is written by another command, which logs these "
                          "tasks too"))  # fmt: skip
    halt = None if request.halt is None else Halt(request.halt, notify)
    watch = SweepWatch(home, sweep, [follower for follower in (log, halt) if follower is not None])
    output = None if attendant.output is None else _OutputPipe(attendant.output)
    begun = time.monotonic()
    attended = _attend(
        attendant,
        sweep["id"],
        lambda control: agent_command(
            sweep["key"],
            slots=request.slots.of_sweep(sweep),
            folder=folder,
            limits=request.limits,
            control=control,
            quiet=attendant.draws,
            output=None if output is None else output.pipe,
        ),
        folder,
        {**variables, "RUNYARD_HOME": str(home.path)},
        watch,
        output,
    )
    if not attended.is_left:
        if output is not None:
            output.finish()
        watch.look_once_more(notify)
    seconds = time.monotonic() - begun
    is_ours = log is not None and log.is_ours
    return Worked(watch.sweep, watch.failed, seconds, attended, log_path if is_ours else None)


def work_elsewhere(
    sweep: SweepElsewhere, slots: Slots, limits: Limits, attendant: Attendant, notify: Notify
) -> Attended:
    """Run trials of a sweep at a server that is not ours, until there are none left."""
    at_a_time = f"{slots}; Ctrl-C hands back what runs"
    notify(Notice(f"working on {sweep.path} at {sweep.url}, {at_a_time}"))
    return _attend(
        attendant,
        sweep.path,
        lambda control: elsewhere_command(sweep, slots=slots, limits=limits, control=control),
        None,
        {"RUNYARD_HOME": str(locate().path)},
    )


def _attend(
    attendant: Attendant,
    name: str,
    command: Callable[[int], list[str]],
    folder: str | None,
    variables: dict[str, str],
    watch: SweepWatch | None = None,
    output: _OutputPipe | None = None,
) -> Attended:
    # Held open as long as we live: an agent whose command is killed ends as if asked to.
    control, held = os.pipe()

    def start() -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            command(control),
            stdin=subprocess.DEVNULL,
            stdout=_STDERR,
            pass_fds=[control] if output is None else [control, output.pipe],
            start_new_session=True,  # Ctrl-C is ours to pass on.
            cwd=folder,
            env={**os.environ, **variables},
        )
        os.close(control)
        if output is not None:
            output.begin()
        return process

    try:
        attended = attendant.attend(start, name, watch)
        if attended.is_left:
            os.write(held, DETACH)
            attended.process.returncode = 0  # It lives on; Popen must not warn about that.
    finally:
        os.close(held)
    return attended


class Follower(Protocol):
    """Looks at the sweep along with us, while the agent works and once when it has ended."""

    def look(self, api: Api, sweep: Sweep, *, is_last: bool) -> None: ...

    def close(self) -> None: ...


class SweepWatch:
    """What the server says of the sweep; while it is away, what it said last."""

    def __init__(self, home: Home, sweep: Sweep, followers: Sequence[Follower] = ()) -> None:
        self._home = home
        self.sweep = sweep
        self.running: list[Trial] = []
        self._followers = followers
        self._api: Api | None = None
        self._failed: dict[str, tuple[Trial, str]] = {}

    @property
    def failed(self) -> list[tuple[Trial, str]]:
        return list(self._failed.values())

    def look(self) -> str:
        """Ask anew; a note where that was not possible."""
        try:
            self._api = self._api or find_server(self._home)
            if self._api is None:
                return _AWAY
            self._read(self._api)
        except RunyardError:
            self._api = None
            return _AWAY
        return ""

    def look_for_followers(self) -> None:
        """Where nobody draws what is seen."""
        if self._followers:
            self.look()

    def look_once_more(self, notify: Notify) -> None:
        self._read(open_server(notify, self._home, quiet=True), is_last=True)
        for follower in self._followers:
            follower.close()

    def _read(self, api: Api, *, is_last: bool = False) -> None:
        key = self.sweep["key"]
        self.sweep = api.sweeps.sweep(key)
        is_running = self.sweep["counts"]["running"]
        self.running = api.sweeps.trials(key, state="running") if is_running else []
        if self.sweep["counts"]["failed"] != len(self._failed):
            explained = failures(api, self.sweep, self._failed)
            self._failed = {trial["id"]: (trial, why) for trial, why in explained}
        for follower in self._followers:
            follower.look(api, self.sweep, is_last=is_last)


class _OutputPipe:
    """What the programs print: a pipe for the agent, and a thread that copies it. Only the thread
    waits for a slow reader, a pager or a terminal that is stopped."""

    def __init__(self, into: int) -> None:
        self._into = into
        self._read, self.pipe = os.pipe()
        self._thread = threading.Thread(target=self._copy, daemon=True)

    def begin(self) -> None:
        """The agent has its end."""
        os.close(self.pipe)
        self._thread.start()

    def finish(self) -> None:
        self._thread.join(_LAST_OUTPUT_SECONDS)

    def _copy(self) -> None:
        is_read = True
        while data := os.read(self._read, _AT_ONCE):
            while is_read and data:
                try:
                    data = data[os.write(self._into, data) :]
                except OSError:  # `| head` has enough: the agent goes on all the same.
                    is_read = False
        with contextlib.suppress(OSError):
            os.close(self._read)
