"""List runs, or sweeps, the newest first.

  runyard runs                        the newest ones
  runyard runs -P spirals -l 50       of one project
  runyard runs --sweep SWEEP --state failed
  runyard runs --sweeps               sweeps; -P and --state choose among them, too
  runyard runs --json                 for scripts

`runyard show RUN` tells more of one, `runyard logs RUN` what it printed; of a sweep, `runyard
status SWEEP` and `runyard show SWEEP --best` do.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from runyard.actions.watching.listing import (
    RUN_STATES,
    SWEEP_STATES,
    Listed,
    ListRequest,
    list_runs,
    list_sweeps,
)
from runyard.cli.completers import complete_sweep
from runyard.cli.connect import server
from runyard.cli.letters import spelled
from runyard.cli.output import Columns, duration, number, print_json, print_records, say, state_text
from runyard.cli.parser import count
from runyard.client.api import Run
from runyard.client.sweeps import ENDED_STATES, Sweep

_STATES = tuple(dict.fromkeys((*RUN_STATES, *SWEEP_STATES)))
_LIMIT = 20
# What they are called, what lists them all, what makes one.
_RUNS = ("runs", "runyard runs", "runyard run -- python train.py")
_SWEEPS = ("sweeps", "runyard runs --sweeps", "runyard sweep sweep.yaml")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sweeps", action="store_true", help="list sweeps instead of runs")
    parser.add_argument(*spelled("--project"), help="only this project's (NAME or ENTITY/NAME)")
    parser.add_argument("--state", choices=_STATES, metavar="STATE",
                        help=f"only runs in this state: {', '.join(RUN_STATES)}; or sweeps: "
                        f"{', '.join(SWEEP_STATES)}")  # fmt: skip
    sweep = parser.add_argument("--sweep", metavar="SWEEP", help="only this sweep's runs")
    sweep.completer = complete_sweep  # type: ignore[attr-defined]
    parser.add_argument(*spelled("--limit"), type=count, help=f"at most so many (default {_LIMIT})")
    parser.add_argument("--all", action="store_true", help="all of them")
    parser.add_argument("--json", action="store_true", help="print JSON (all, unless --limit)")


def run(args: argparse.Namespace) -> int:
    limit = args.limit if args.limit is not None or args.json else _LIMIT
    request = ListRequest(args.project, args.state, args.sweep, None if args.all else limit)
    listed: Listed[Any] = (list_sweeps if args.sweeps else list_runs)(server(), request)
    name, command, makes = _SWEEPS if args.sweeps else _RUNS
    if args.json:
        print_json(listed.records)
    elif listed.records or listed.has_more:
        print_records(_SWEEP_COLUMNS if args.sweeps else _RUN_COLUMNS, listed.records)
        if listed.has_more:
            say("there are more: --all lists them")
    elif args.project or args.state or args.sweep:
        say(f"no such {name}; `{command}` lists the newest of all projects")
    else:
        say(f"no {name} yet: `{makes}` makes one")
    return 0


def progress(sweep: Sweep) -> str:
    """How many trials have ended, of how many."""
    ended = sum(sweep["counts"][state] for state in ENDED_STATES)
    whole = sweep["expected"]
    return f"{ended}/{whole}" if whole is not None else str(ended)


def summary_text(run: Run) -> str:
    """The plain numbers of a summary in one line."""
    return "  ".join(
        f"{key}={number(value)}"
        for key, value in sorted(run["summary"].items())
        if not key.startswith("_") and isinstance(value, int | float)
    )


def _best(sweep: Sweep) -> str:
    best = sweep["best"]
    if best is None or best["value"] is None:
        return "-"
    return f"{sweep['metric']}={number(best['value'])}  {best['name']}"


def _age(record: Run | Sweep) -> str:
    return duration(max(0.0, time.time() - record["created_at"]))


def _time(run: Run) -> str:
    if run["started_at"] is None:
        return "-"
    return duration((run["ended_at"] or time.time()) - run["started_at"])


_RUN_COLUMNS: Columns = {
    "ID": "id",
    "NAME": "name",
    "PROJECT": "project",
    "STATE": lambda run: state_text(run["state"]),
    "AGE": _age,
    "TIME": _time,
    "SUMMARY": summary_text,
}
_SWEEP_COLUMNS: Columns = {
    "ID": "id",
    "NAME": lambda sweep: "-" if sweep["name"] == sweep["id"] else sweep["name"],
    "PROJECT": "project",
    "METHOD": "method",
    "STATE": lambda sweep: state_text(sweep["state"]),
    "TRIALS": progress,
    "AGE": _age,
    "BEST": _best,
}
