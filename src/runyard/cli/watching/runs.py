"""List runs, or sweeps, the newest first.

  runyard runs                        the newest ones
  runyard runs -P spirals -l 50       of one project
  runyard runs --sweep SWEEP --state failed
  runyard runs --sweeps               sweeps; -P and --state choose among them, too
  runyard runs --json                 for scripts, with whole names and all values

The table fits the terminal, or 80 columns in a pipe. Names are whole if they fit. The summary shows
the metrics of `define_metric(summary=...)` first, then what has room; +3 stands for three more.

`runyard show RUN` tells more of one, `runyard logs RUN` what it printed; of a sweep, `runyard
status SWEEP` and `runyard show SWEEP --best` do.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from runyard.actions.watching import listing
from runyard.cli.completers import complete_sweep
from runyard.cli.connect import server
from runyard.cli.output import Columns, duration, number, print_json, print_records, say, state_text
from runyard.cli.parser import add, count, flag
from runyard.client.sweeps import ENDED_STATES
from runyard.shapes.runs import Run
from runyard.shapes.sweeps import Sweep
from runyard.vocabulary import RUN_STATES, SWEEP_STATES

_STATES = tuple(dict.fromkeys((*RUN_STATES, *SWEEP_STATES)))
_LIMIT = 20
_WIDTH = 80
# What they are called, what lists them all, what makes one.
_RUNS = ("runs", "runyard runs", "runyard run -- python train.py")
_SWEEPS = ("sweeps", "runyard runs --sweeps", "runyard sweep sweep.yaml")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    flag(parser, "--sweeps", "list sweeps instead of runs")
    add(parser, "-P --project", "only this project's (NAME or ENTITY/NAME)")
    runs, sweeps = ", ".join(RUN_STATES), ", ".join(SWEEP_STATES)
    text = f"only runs in this state: {runs}; or sweeps: {sweeps}"
    add(parser, "--state STATE", text, choices=_STATES)
    add(parser, "--sweep SWEEP", "only this sweep's runs", completer=complete_sweep)
    add(parser, "-l --limit", f"at most so many (default {_LIMIT})", type=count)
    flag(parser, "--all", "all of them")
    flag(parser, "--json", "print JSON (all, unless --limit)")


def run(args: argparse.Namespace) -> int:
    limit = args.limit if args.limit is not None or args.json else _LIMIT
    request = listing.ListRequest(args.project, args.state, args.sweep, None if args.all else limit)
    api = server()
    list_them = listing.list_sweeps if args.sweeps else listing.list_runs
    listed: listing.Listed[Any] = list_them(api, request)
    name, command, makes = _SWEEPS if args.sweeps else _RUNS
    if args.json:
        print_json(listed.records)
    elif listed.records or listed.has_more:
        if args.sweeps:
            print_records(_SWEEP_COLUMNS, listed.records)
        else:
            best = listing.best_values(api, args.sweep) if args.sweep else {}
            _print_runs(listed.records, best, is_one_project=bool(args.project or args.sweep))
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


def summary_text(run: Run, best: Mapping[str, float], room: int) -> str:
    """The numbers of a summary that have room in a line; how many more there are."""
    parts = [f"{name}={number(value)}" for name, value in listing.summary_numbers(run, best)]
    shown = len(parts)
    while shown > 1 and len(_joined(parts, shown)) > room:
        shown -= 1
    return _joined(parts, shown)


def _joined(parts: list[str], shown: int) -> str:
    more = f"  +{len(parts) - shown}" if shown < len(parts) else ""
    return "  ".join(parts[:shown]) + more


def _print_runs(
    runs: Sequence[Run], best: Mapping[int, Mapping[str, float]], *, is_one_project: bool
) -> None:
    """As wide as the terminal, and 80 columns into a pipe or a file; `best` is by the run's key."""
    columns: Columns = {
        **_RUN_COLUMNS,
        "SUMMARY": lambda run: partial(summary_text, run, best.get(run["key"], {})),
    }
    shown = {title: cell for title, cell in columns.items()
             if title != "PROJECT" or not is_one_project}  # fmt: skip
    width = None if sys.stdout.isatty() else _WIDTH
    print_records(shown, runs, width=width, gives_way="NAME")


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
