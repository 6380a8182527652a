"""List runs, the newest first.

  runyard runs                        the newest ones
  runyard runs -P spirals -l 50       of one project
  runyard runs --sweep SWEEP --state failed
  runyard runs --json                 for scripts

`runyard show RUN` tells more of one, `runyard logs RUN` what it printed.
"""

from __future__ import annotations

import argparse
import time

from runyard.actions.naming import find_sweep
from runyard.cli.completers import complete_sweep
from runyard.cli.connect import server
from runyard.cli.letters import spelled
from runyard.cli.output import duration, number, print_json, print_table, say, state_text
from runyard.cli.parser import count
from runyard.client.api import Run

STATES = (
    "pending", "running", "finished", "failed", "crashed", "killed", "preempting", "preempted",
)  # fmt: skip
_LIMIT = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(*spelled("--project"), help="only this project's (NAME or ENTITY/NAME)")
    parser.add_argument("--state", choices=STATES, metavar="STATE",
                        help=f"only runs in this state: {', '.join(STATES)}")  # fmt: skip
    sweep = parser.add_argument("--sweep", metavar="SWEEP", help="only this sweep's")
    sweep.completer = complete_sweep  # type: ignore[attr-defined]
    parser.add_argument(*spelled("--limit"), type=count, help=f"at most so many (default {_LIMIT})")
    parser.add_argument("--all", action="store_true", help="all of them")
    parser.add_argument("--json", action="store_true", help="print JSON (all runs, unless --limit)")


def run(args: argparse.Namespace) -> int:
    limit = args.limit if args.limit is not None or args.json else _LIMIT
    if args.all:
        limit = None
    # One more than is shown tells whether there are more.
    asked_for = None if limit is None else limit + 1
    listed = _listed(args, asked_for)
    found = listed[:limit]
    if args.json:
        print_json(found)
        return 0
    if not listed:
        asked = args.project or args.state or args.sweep
        say(
            "no such runs; `runyard runs` lists the newest of all projects"
            if asked
            else "no runs yet: `runyard run -- python train.py` makes one"
        )
        return 0
    print_table(
        ("ID", "NAME", "PROJECT", "STATE", "AGE", "TIME", "SUMMARY"),
        (
            (
                one["id"],
                one["name"],
                one["project"],
                state_text(one["state"]),
                duration(max(0.0, time.time() - one["created_at"])),
                _time(one),
                summary_text(one),
            )
            for one in found
        ),
    )
    if len(listed) > len(found):
        say("there are more: --all lists them")
    return 0


def _listed(args: argparse.Namespace, most: int | None) -> list[Run]:
    api = server()
    if args.sweep is None:
        return api.runs(project=args.project, state=args.state, limit=most)
    sweep = find_sweep(api, args.sweep)
    return api.runs(sweep=sweep["key"], state=args.state, limit=most)


def summary_text(one: Run) -> str:
    """The plain numbers of a summary in one line."""
    return "  ".join(
        f"{key}={number(value)}"
        for key, value in sorted(one["summary"].items())
        if not key.startswith("_") and isinstance(value, int | float)
    )


def _time(one: Run) -> str:
    if one["started_at"] is None:
        return "-"
    return duration((one["ended_at"] or time.time()) - one["started_at"])
