"""How all that is at work stands: sweeps, their agents, runs of their own; or one sweep.

SWEEP is an id, a name, or a part of either; without it, every sweep that is not over, and every run
that is none of theirs. With --watch it is shown anew every few seconds, until Ctrl-C or the end.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from runyard.cli.best import values_text
from runyard.cli.connect import complete_sweep, server
from runyard.cli.output import console, duration, number, print_json, say
from runyard.cli.sweep_view import ENDED, STATES
from runyard.cli.sweep_watch import failures, is_list
from runyard.cli.sweeps import find_sweep, progress
from runyard.cli.usage import usage_text
from runyard.client.api import Api, Run
from runyard.client.sweeps import Sweep, Trial

_OPEN = ("running", "paused")
_EVERY = 2.0
_MOST_FAILED = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_argument(
        "sweep", nargs="?", metavar="SWEEP", help="which sweep (default: all that is at work)"
    )
    which.completer = complete_sweep  # type: ignore[attr-defined]
    parser.add_argument("-w", "--watch", action="store_true", help="show it anew until it is over")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    while True:
        api = server()
        chosen = [find_sweep(api, args.sweep)] if args.sweep else _at_work(api)
        runs = [] if args.sweep else _runs_at_work(api)
        told = [(one, failures(api, one)) for one in chosen]
        if args.json:
            print_json(_as_json(told, runs))
        else:
            if args.watch:
                console().clear()
            _print(told, runs)
        over = not runs and all(one["state"] not in _OPEN for one in chosen)
        if not args.watch or over:
            return 0
        time.sleep(_EVERY)


def _at_work(api: Api) -> list[Sweep]:
    return [one for one in api.sweeps.sweeps() if one["state"] in _OPEN]


def _runs_at_work(api: Api) -> list[Run]:
    """Runs that are no trial of a sweep."""
    running = api.runs(state="running")
    trials = {
        trial["id"]
        for sweep in (_at_work(api) if running else [])
        for trial in api.sweeps.trials(sweep["key"], state="running")
    }
    return [one for one in running if one["id"] not in trials]


def _as_json(told: list[tuple[Sweep, list[tuple[Trial, str]]]], runs: list[Run]) -> dict[str, Any]:
    return {
        "sweeps": [
            {**sweep, "failures": [{"trial": one, "why": why} for one, why in failed]}
            for sweep, failed in told
        ],
        "runs": runs,
    }


def _print(told: list[tuple[Sweep, list[tuple[Trial, str]]]], runs: list[Run]) -> None:
    if not told and not runs:
        say("nothing is at work; `runyard sweeps` and `runyard runs` list what was")
    out = console()
    for sweep, failed in told:
        for line, style in sweep_lines(sweep, failed):
            out.print(line, style=style, soft_wrap=True)
    for one in runs:
        since = duration(max(0.0, time.time() - (one["started_at"] or one["created_at"])))
        where = f" on {one['host']}" if one["host"] else ""
        out.print(
            f"run {one['id']}  {one['name']}  {one['project']}  running for {since}{where}, "
            f"{one['steps']} steps",
            soft_wrap=True,
        )


def sweep_lines(sweep: Sweep, failed: list[tuple[Trial, str]]) -> list[tuple[str, str | None]]:
    """A sweep at a glance, line by line, each with its colour."""
    counts = sweep["counts"]
    named = sweep["id"] if sweep["name"] == sweep["id"] else f"{sweep['id']} {sweep['name']}"
    kind = "list" if is_list(sweep) else sweep["method"]
    head = f"sweep {named}  {sweep['project']}  {kind}  {sweep['state']}  {progress(sweep)}"
    lines: list[tuple[str, str | None]] = [(head, "bold")]
    parts = [f"{counts[state]} {state}" for state in STATES if counts[state]]
    left = sweep["eta_seconds"]
    if sweep["state"] in _OPEN and left:
        parts.append(f"about {duration(left)} left")
    lines.append((f"  {', '.join(parts) or 'no trials yet'}", None))
    if sweep["cause"]:
        lines.append((f"  {sweep['cause']}", "red"))
    best = sweep["best"]
    if best is not None and best["value"] is not None:
        value = f"{sweep['metric']} {number(best['value'])}"
        lines.append((f"  best  {value}  {best['name']}  {values_text(best['values'])}", "green"))
    for agent in sweep["agents"]:
        where = (
            agent["host"] if agent["pid"] is None else f"{agent['host']}, process {agent['pid']}"
        )
        lines.append((f"  agent {agent['key']}  {agent['running']} of {agent['slots']} slots at "
                      f"work  ({where})", None))  # fmt: skip
        used = usage_text(agent["usage"])
        if used:
            lines.append((f"    {used}", None))
    unfinished = sum(counts.values()) > sum(counts[state] for state in ENDED)
    if sweep["state"] == "running" and not sweep["agents"]:
        more = "unfinished trials" if unfinished else "more to do"
        lines.append((f"  nobody works on it, and it has {more}: `runyard sweep {sweep['id']}`",
                      "yellow"))  # fmt: skip
    for trial, why in failed[-_MOST_FAILED:]:
        lines.append((f"  failed  {trial['name']}  {why}", "red"))
    if len(failed) > _MOST_FAILED:
        lines.append((f"  ... and {len(failed) - _MOST_FAILED} more failed", "red"))
    return lines
