"""Working on a sweep in front of a terminal: its progress, Ctrl-C, and how it ended."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

from runyard.actions.sweeping import work as sweep_work
from runyard.actions.watching.failures import is_list
from runyard.cli.output import print_json, say, show
from runyard.cli.starting.asking import Asked
from runyard.cli.streams import unfiltered
from runyard.cli.watching.sweep_view import live, print_report

_STDOUT, _STDERR = 1, 2


def work_on(request: sweep_work.WorkRequest, *, as_json: bool, quiet: bool = False) -> int:
    """Until nothing is left to run; the exit code. What the lines of a list print is shown, unless
    it is to be `quiet`."""
    shows_output = is_list(request.sweep) and not quiet
    worked = sweep_work.work(request, Terminal(as_json=as_json, shows_output=shows_output), show)
    code = _say_left(worked) if worked.attended.is_left else _report(worked, request, as_json)
    if worked.log is not None:
        say(f"job log: {worked.log}")
    return code


class Terminal:
    """Draws the sweep's progress, or shows what programs print, and asks what a Ctrl-C means."""

    def __init__(self, *, as_json: bool = False, shows_output: bool = False) -> None:
        self.output = (_STDERR if as_json else _STDOUT) if shows_output else None
        self.draws = sys.stderr.isatty() and not as_json and not shows_output

    def attend(
        self, start: sweep_work.Start, name: str, watch: sweep_work.SweepWatch | None
    ) -> sweep_work.Attended:
        with Asked(may_leave=watch is not None and self.output is None) as asked:
            process = start()
            drawing = _drawn(watch) if watch is not None and self.draws else _undrawn(watch)
            with drawing as view:
                while process.poll() is None and not asked.is_left:
                    asked.pass_on(process, name, view.pause)
                    view.update(asked.note)
                    asked.wait(process, sweep_work.LOOK_EVERY)
        return sweep_work.Attended(process, asked.number, asked.is_left)


@dataclass(frozen=True)
class _View:
    """How the sweep is shown while we wait; `pause` while something else is."""

    update: Callable[[str], None]
    pause: Callable[[], AbstractContextManager[None]] = nullcontext


@contextmanager
def _drawn(watch: sweep_work.SweepWatch) -> Iterator[_View]:
    from rich.live import Live

    from runyard.cli.tables import PrintableConsole

    terminal = unfiltered(sys.stderr)
    out = PrintableConsole(file=terminal, highlight=False, emoji=False, markup=False)
    with Live(console=out, auto_refresh=False, transient=True) as drawing:

        def update(note: str) -> None:
            away = watch.look()
            text = live(watch.sweep, watch.running, watch.failed, away or note, out.width)
            drawing.update(text, refresh=True)

        @contextmanager
        def pause() -> Iterator[None]:
            drawing.stop()
            try:
                yield
            finally:
                drawing.start()

        yield _View(update, pause)


@contextmanager
def _undrawn(watch: sweep_work.SweepWatch | None) -> Iterator[_View]:
    """Without a terminal the agent's own lines tell of it."""
    yield _View(lambda _note: None if watch is None else watch.look_for_followers())


def _say_left(worked: sweep_work.Worked) -> int:
    sweep = worked.sweep["id"]
    say(f"sweep {sweep} goes on in the background: process {worked.attended.process.pid}")
    for command, what in (
        (f"runyard status {sweep} --watch", "how far it is"),
        (f"runyard sweep --stop {sweep}", "let what runs finish, then end"),
        ("runyard agents", "who works on it; `runyard agents drain N` lets one go"),
    ):
        print(f"  {command:<34}  {what}", file=sys.stderr)
    return 0


def _report(worked: sweep_work.Worked, request: sweep_work.WorkRequest, as_json: bool) -> int:
    sweep, failed = worked.sweep, worked.failures
    if as_json:
        print_json({**sweep, "failures": [{"trial": trial, "why": why} for trial, why in failed]})
    else:
        print_report(sweep, failed, seconds=worked.seconds)
    if worked.is_open:
        say(f"to go on:  runyard sweep {sweep['id']}")
    return worked.exit_code(request.limits)
