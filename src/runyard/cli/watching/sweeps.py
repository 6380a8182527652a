"""List sweeps, the newest first.

  runyard sweeps                 those of all projects
  runyard sweeps -P spirals      of one project
  runyard sweeps --json          for scripts

`runyard status SWEEP` tells more of one, `runyard best SWEEP` its best trials.
"""

from __future__ import annotations

import argparse
import time

from runyard.cli.connect import server
from runyard.cli.letters import spelled
from runyard.cli.output import duration, number, print_json, print_table, say, state_text
from runyard.cli.parser import count
from runyard.client.sweeps import ENDED_STATES, Sweep

STATES = ("running", "paused", "finished", "canceled", "failed")
_LIMIT = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(*spelled("--project"), help="only this project's (NAME or ENTITY/NAME)")
    parser.add_argument("--state", choices=STATES, metavar="STATE",
                        help=f"only sweeps in this state: {', '.join(STATES)}")  # fmt: skip
    parser.add_argument(*spelled("--limit"), type=count, help=f"at most so many (default {_LIMIT})")
    parser.add_argument("--json", action="store_true", help="print JSON (all, unless --limit)")


def run(args: argparse.Namespace) -> int:
    limit = args.limit if args.limit is not None or args.json else _LIMIT
    listed = server().sweeps.sweeps(project=args.project)
    found = [one for one in listed if args.state in (None, one["state"])]
    shown = found[:limit]
    if args.json:
        print_json(shown)
        return 0
    if not found:
        asked = args.project or args.state
        say("no such sweeps" if asked else "no sweeps yet: `runyard sweep sweep.yaml` makes one")
        return 0
    print_table(
        ("ID", "NAME", "PROJECT", "METHOD", "STATE", "TRIALS", "AGE", "BEST"),
        (
            (
                one["id"],
                "-" if one["name"] == one["id"] else one["name"],
                one["project"],
                one["method"],
                state_text(one["state"]),
                progress(one),
                duration(max(0.0, time.time() - one["created_at"])),
                best_text(one),
            )
            for one in shown
        ),
    )
    if len(found) > len(shown):
        say(f"there are {len(found) - len(shown)} more: -l {len(found)} lists them")
    return 0


def progress(one: Sweep) -> str:
    """How many trials have ended, of how many."""
    counts = one["counts"]
    ended = sum(counts[state] for state in ENDED_STATES)
    whole = one["expected"]
    return f"{ended}/{whole}" if whole is not None else str(ended)


def best_text(one: Sweep) -> str:
    best = one["best"]
    if best is None or best["value"] is None:
        return "-"
    return f"{one['metric']}={number(best['value'])}  {best['name']}"
