"""Print what a run printed, or all trials of a sweep, each line marked with its trial.

RUN is an id, the beginning of one, a name, or PROJECT/any of these; without it, the newest run. A
sweep's id or name prints all its trials.
"""

from __future__ import annotations

import argparse
import sys
import time

from runyard.cli.connect import server
from runyard.cli.parser import count
from runyard.cli.show import add_run_argument, find_run, sweep_instead
from runyard.client.api import Api, Console, RunDetail
from runyard.errors import NotFoundError, ServerError

_WAIT_SECONDS = 20.0
_PAUSES = (0.1, 1.0, 3.0)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run_argument(parser)
    parser.add_argument("-f", "--follow", action="store_true", help="go on until the run ends")
    parser.add_argument("-n", "--lines", type=count, help="only the last so many lines, then go on")


def run(args: argparse.Namespace) -> int:
    api = server()
    try:
        found = find_run(api, args.run)
    except NotFoundError:
        sweep = sweep_instead(api, args.run)
        if sweep is None:
            raise
        from runyard.cli.sweep_logs import print_sweep_logs

        return print_sweep_logs(api, sweep, follow=args.follow, lines=args.lines)
    after = 0
    held = ""
    while True:
        page = api.console(found, after)
        if page["next"] == after:
            break
        after = page["next"]
        if args.lines is None:
            _write(page["text"])
        else:
            held = last_lines(held + page["text"], args.lines)
    _write(held)
    while args.follow and not page["ended"]:
        api, page = _next_page(api, found, after)
        after = page["next"]
        _write(page["text"])
    return 0


def last_lines(text: str, number: int) -> str:
    """As `tail` has it: a progress bar, which draws over itself, is one line."""
    lines = text.split("\n")
    unfinished = 1 if lines[-1] else 0
    return "\n".join(lines[max(0, len(lines) - 1 + unfinished - number) :]) if number else ""


def _next_page(api: Api, found: RunDetail, after: int) -> tuple[Api, Console]:
    # The server may be restarted, or die, while we wait: the run goes on, and so do we.
    for pause in _PAUSES:
        try:
            return api, api.console(found, after, wait=_WAIT_SECONDS)
        except ServerError:
            time.sleep(pause)
            api = server()
    return api, api.console(found, after)


def _write(text: str) -> None:
    if text:
        sys.stdout.write(text)
        sys.stdout.flush()
