"""An agent on this machine, watched until it is done."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Protocol

from runyard.actions.agent_process import agent_command, working_folder
from runyard.actions.slots import Slots
from runyard.actions.watching.failures import failures, is_list
from runyard.cli.connect import server
from runyard.cli.output import print_json, say
from runyard.cli.starting.asking import Asked
from runyard.cli.starting.sweep_output import Output
from runyard.cli.streams import unfiltered
from runyard.cli.watching.sweep_view import live, print_report
from runyard.client.api import Api
from runyard.client.discover import find_server
from runyard.client.sweeps import Sweep, Trial
from runyard.errors import RunyardError
from runyard.home import Home
from runyard.node.agent.options import DETACH

_LOOK_EVERY = 0.5
_MANY_FAILED = 101


class Follower(Protocol):
    """Looks at the sweep along with us, while the agent works and once when it has ended."""

    def look(self, api: Api, sweep: Sweep, *, is_last: bool) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Limits:
    """When an agent ends although trials are left."""

    count: int | None = None
    """It has taken so many."""
    seconds: float | None = None
    grace: float | None = None
    """How long before its end programs are told to save."""


NO_LIMITS = Limits()


def work(
    home: Home,
    sweep: Sweep,
    *,
    slots: Slots,
    variables: Mapping[str, str],
    as_json: bool,
    show: Output | None = None,
    followers: Sequence[Follower] = (),
    limits: Limits = NO_LIMITS,
) -> int:
    """Work on a sweep until nothing is left, a limit is reached, or somebody asks to end.

    With `show`, what the programs print is shown in place of the sweep's progress.
    """
    where = working_folder(sweep["folder"])
    on_terminal = sys.stderr.isatty() and not as_json and show is None
    begun = time.monotonic()
    watch = _Watch(home, sweep, followers)
    # Held open as long as we live: an agent whose command is killed ends as if asked to.
    leash, held = os.pipe()
    with Asked(may_leave=show is None) as asked:
        process = subprocess.Popen(
            agent_command(
                sweep["key"],
                slots=slots,
                count=limits.count,
                folder=where,
                leash=leash,
                quiet=on_terminal,
                output=None if show is None else show.pipe,
                seconds=limits.seconds,
                grace=limits.grace,
            ),
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            pass_fds=[leash] if show is None else [leash, show.pipe],
            start_new_session=True,  # Ctrl-C is ours to pass on.
            cwd=where,
            env={**os.environ, **variables, "RUNYARD_HOME": str(home.path)},
        )
        os.close(leash)
        if show is not None:
            show.begin()
        drawing = watch.drawn() if on_terminal else watch.told()
        with drawing as view:
            while process.poll() is None and not asked.is_left:
                asked.pass_on(process, sweep["id"], view.pause)
                view.update(asked.note)
                asked.wait(process, _LOOK_EVERY)
        if asked.is_left:
            os.write(held, DETACH)
        os.close(held)
    if asked.is_left:
        process.returncode = 0  # It lives on; Popen must not warn about that.
        return _say_left(sweep["id"], process.pid)
    if show is not None:
        show.finish()
    lasted = time.monotonic() - begun
    code = _report(
        watch, as_json=as_json, seconds=lasted, asked=asked, is_timed=limits.seconds is not None
    )
    return code or (1 if process.returncode else 0)


def _say_left(sweep: str, pid: int) -> int:
    say(f"sweep {sweep} goes on in the background: process {pid}")
    for command, what in (
        (f"runyard status {sweep} --watch", "how far it is"),
        (f"runyard sweep --stop {sweep}", "let what runs finish, then end"),
        ("runyard agents", "who works on it; `runyard agents drain N` lets one go"),
    ):
        print(f"  {command:<34}  {what}", file=sys.stderr)
    return 0


@dataclass(frozen=True)
class _View:
    """How the sweep is shown while we wait; `pause` while something else is."""

    update: Callable[[str], None]
    pause: Callable[[], AbstractContextManager[None]] = nullcontext


class _Watch:
    """What the server says of the sweep; while it is away, what it said last."""

    def __init__(self, home: Home, sweep: Sweep, followers: Sequence[Follower] = ()) -> None:
        self._home = home
        self.sweep = sweep
        self._followers = followers
        self._api: Api | None = None
        self._running: list[Trial] = []
        self._failed: dict[str, tuple[Trial, str]] = {}

    @property
    def failed(self) -> list[tuple[Trial, str]]:
        return list(self._failed.values())

    def look(self) -> str:
        """Ask anew; a note where that was not possible."""
        try:
            self._api = self._api or find_server(self._home)
            if self._api is None:
                return "the server is away; what runs goes on"
            self._read(self._api)
        except RunyardError:
            self._api = None
            return "the server is away; what runs goes on"
        return ""

    def look_once_more(self) -> None:
        self._read(server(self._home, quiet=True), is_last=True)
        for follower in self._followers:
            follower.close()

    def _read(self, api: Api, *, is_last: bool = False) -> None:
        key = self.sweep["key"]
        self.sweep = api.sweeps.sweep(key)
        self._running = (
            api.sweeps.trials(key, state="running") if self.sweep["counts"]["running"] else []
        )
        if self.sweep["counts"]["failed"] != len(self._failed):
            self._failed = {
                one["id"]: (one, why) for one, why in failures(api, self.sweep, self._failed)
            }
        for follower in self._followers:
            follower.look(api, self.sweep, is_last=is_last)

    @contextmanager
    def drawn(self) -> Iterator[_View]:
        from rich.live import Live

        from runyard.cli.tables import PrintableConsole

        terminal = unfiltered(sys.stderr)
        out = PrintableConsole(file=terminal, highlight=False, emoji=False, markup=False)
        with Live(console=out, auto_refresh=False, transient=True) as drawing:

            def update(note: str) -> None:
                away = self.look()
                shown = live(self.sweep, self._running, self.failed, away or note, out.width)
                drawing.update(shown, refresh=True)

            @contextmanager
            def pause() -> Iterator[None]:
                drawing.stop()
                try:
                    yield
                finally:
                    drawing.start()

            yield _View(update, pause)

    @contextmanager
    def told(self) -> Iterator[_View]:
        """Without a terminal the agent's own lines tell of it."""
        yield _View(lambda _note: self._look_for_followers())

    def _look_for_followers(self) -> None:
        if self._followers:
            self.look()


def _report(watch: _Watch, *, as_json: bool, seconds: float, asked: Asked, is_timed: bool) -> int:
    watch.look_once_more()
    sweep = watch.sweep
    went_on = sweep["state"] in ("running", "paused")
    if as_json:
        print_json({**sweep, "failures": [{"trial": one, "why": why} for one, why in watch.failed]})
    else:
        print_report(sweep, watch.failed, seconds=seconds)
    if went_on:
        say(f"to go on:  runyard sweep {sweep['id']}")
    if asked.number is not None:
        return 128 + asked.number
    if went_on and is_timed:
        return 0  # It did what it was asked for; the rest has a next time.
    if is_list(sweep):
        # As GNU parallel: how many failed.
        return min(sweep["counts"]["failed"], _MANY_FAILED) or (
            1 if sweep["state"] != "finished" else 0
        )
    return 1 if sweep["state"] == "failed" or not sweep["counts"]["finished"] else 0
