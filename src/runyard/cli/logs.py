"""Print what a run printed.

RUN is an id, the beginning of one, a name, or PROJECT/any of these; without it, the newest run.
"""

from __future__ import annotations

import argparse
import sys

from runyard.cli.connect import server
from runyard.cli.show import add_run_argument, find_run

_WAIT_SECONDS = 20.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run_argument(parser)
    parser.add_argument("-f", "--follow", action="store_true", help="go on until the run ends")
    parser.add_argument("-n", "--lines", type=int, help="only the last so many lines, then go on")


def run(args: argparse.Namespace) -> int:
    api = server()
    found = find_run(api, args.run)
    after = 0
    held: list[str] = []
    while True:
        page = api.console(found, after)
        if page["next"] == after:
            break
        after = page["next"]
        if args.lines is None:
            _write(page["text"])
        else:
            held = "".join([*held, page["text"]]).splitlines(keepends=True)[-args.lines or None :]
    _write("".join(held))
    while args.follow and not page["ended"]:
        page = api.console(found, after, wait=_WAIT_SECONDS)
        after = page["next"]
        _write(page["text"])
    return 0


def _write(text: str) -> None:
    if text:
        sys.stdout.write(text)
        sys.stdout.flush()
