"""Show a run: its config, its summary, and each metric as a curve; or a sweep and its best trials.

  runyard show                      the newest run
  runyard show a1b2c3d4             one run, by id or name
  runyard show SWEEP                a sweep and its best trials
  runyard show --best               the best trials of the newest sweep, as a table
  runyard show SWEEP --best -l 20   the first twenty of a sweep

RUN is an id, the beginning of one, a name, or PROJECT/any of these; without it, the newest run. A
sweep's id or name shows the sweep. Among the best, trials of one setting with several seeds count
together: mean ± standard deviation. With several metrics, the Pareto front: the trials that no
other beats in all of them.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

from runyard.actions.naming import find_run_or_sweep
from runyard.actions.once_more import command_line
from runyard.actions.watching.figures_text import usage_text
from runyard.cli.completers import complete_run_or_sweep
from runyard.cli.connect import server
from runyard.cli.output import STATE_COLOURS, ago, console, duration, number, print_json
from runyard.cli.parser import add, flag, positive
from runyard.cli.watching.best_view import LIMIT, print_best, show_best
from runyard.cli.watching.sparkline import sparkline, terminal_is_plain, thinned
from runyard.client.api import Api
from runyard.client.sweeps import OPEN_STATES
from runyard.end_causes import NOT_IN_EXIT_CODE
from runyard.errors import UsageError
from runyard.shapes.runs import RunDetail, Series
from runyard.shapes.sweeps import Sweep

_CURVE, _LONGEST_NAME = 32, 28
_BEST = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add(parser, "run RUN|SWEEP", "which one (default: the newest run)",
        nargs="?", completer=complete_run_or_sweep)  # fmt: skip
    flag(parser, "--best", "the best trials of a sweep")
    add(parser, "-l --limit", f"with --best: so many (default {LIMIT})", type=positive)
    flag(parser, "--json", "print JSON")


def run(args: argparse.Namespace) -> int:
    if args.limit is not None and not args.best:
        raise UsageError("--limit is for --best", mend="runyard show SWEEP --best -l 20")
    api = server()
    if args.best:
        return show_best(api, args.run, args.limit, as_json=args.json)
    named = find_run_or_sweep(api, args.run)
    if named.run is None:
        assert named.sweep is not None
        return _show_sweep(api, named.sweep, as_json=args.json)
    detail = named.run
    metrics = api.metrics(detail, points=_CURVE)
    if args.json:
        print_json({**detail, "metrics": metrics})
        return 0
    out = console()
    from rich.text import Text

    head = Text.assemble(
        (f"{detail['project']}/{detail['name']}", "bold"),
        f"  {detail['id']}  ",
        (detail["state"], STATE_COLOURS.get(detail["state"], "")),
        "" if detail["exit_code"] is None else f" (exit code {detail['exit_code']})",
    )
    out.print(head)
    for line in _facts(api, detail):
        out.print(f"  {line}", soft_wrap=True)
    config = sorted(detail["config"].items())
    _print_section("config", [(key, number(value)) for key, value in config])
    _print_metrics(metrics, detail["steps"])
    drawn = {series["key"] for series in metrics}
    rest = [
        (key, summary_text(value))
        for key, value in sorted(detail["summary"].items())
        if not key.startswith("_") and key not in drawn
    ]
    _print_section("summary", rest)
    return 0


def summary_text(value: Any) -> str:
    """A value of the summary in a line: the numbers of one histogram would fill the screen."""
    kind = value.get("_type") if isinstance(value, dict) else None
    if kind == "histogram":
        edges = value.get("bins")
        if isinstance(edges, list) and edges:
            count = max(len(edges) - 1, 1)
            return f"histogram, {count} bins from {number(edges[0])} to {number(edges[-1])}"
        return "histogram"
    if isinstance(kind, str) and isinstance(value.get("path"), str):
        return f"{kind}, {value['path']}"
    return number(value)


def _show_sweep(api: Api, sweep: Sweep, *, as_json: bool) -> int:
    from runyard.actions.estimates import estimate_against_truth
    from runyard.actions.results.best import best_of
    from runyard.actions.watching.failures import failures
    from runyard.cli.watching.sweep_view import print_report

    if as_json:
        print_json({**sweep, "all_trials": api.sweeps.trials(sweep["key"])})
        return 0
    begun = sweep["started_at"] or sweep["created_at"]
    is_open = sweep["state"] in OPEN_STATES
    lasted = (time.time() if is_open else sweep["ended_at"] or begun) - begun
    print_report(sweep, failures(api, sweep), seconds=lasted)
    compared = estimate_against_truth(api, sweep)
    if compared:
        console().print(f"\n{compared}", soft_wrap=True)
    settings, aims = best_of(api, sweep)
    if len(settings) > 1:
        console().print("")
        print_best(api, sweep, settings[:_BEST], aims)
    return 0


def _facts(api: Api, detail: RunDetail) -> Iterator[str]:
    command = command_line(api, detail) or detail["program"]
    if command:
        yield command
    started = detail["started_at"]
    where = f"on {detail['host']}" if detail["host"] else ""
    folder = f" in {detail['folder']}" if detail["folder"] else ""
    if where or folder:
        yield f"{where}{folder}".strip()
    if started is not None:
        took = f", took {duration(detail['ended_at'] - started)}" if detail["ended_at"] else ""
        yield f"started {ago(started)}{took}"
    if detail["tags"]:
        yield f"tags: {', '.join(detail['tags'])}"
    if detail["notes"]:
        yield f"notes: {detail['notes']}"
    if len(detail["attempts"]) > 1:
        causes = ", ".join(attempt["cause"] or "running" for attempt in detail["attempts"])
        yield f"{len(detail['attempts'])} attempts: {causes}"
    elif detail["attempts"] and detail["attempts"][0]["cause"] in NOT_IN_EXIT_CODE:
        yield f"ended: {detail['attempts'][0]['cause']}"
    used = usage_text(detail["attempts"][-1]["usage"]) if detail["attempts"] else ""
    if used:
        yield f"used: {used}"
    for archive in detail["archives"]:
        yield (
            f"{archive['reason']} {ago(archive['made_at'])}: {archive['steps']} steps put aside "
            f"(`runyard export {detail['id']} --archived`)"
        )
    for alert in detail["alerts"]:
        text = " ".join(alert["text"].split())
        yield f"alert ({alert['level']}) {ago(alert['raised_at'])}: {alert['title']}: {text}"


def _print_section(title: str, rows: list[tuple[str, str]]) -> None:
    if not rows:
        return
    out = console()
    out.print(f"\n{title}", style="bold")
    width = min(max(len(key) for key, _ in rows), 40)
    for key, value in rows:
        out.print(f"  {key:<{width}}  {value}", soft_wrap=True)


def _print_metrics(metrics: list[Series], steps: int) -> None:
    if not metrics:
        return
    out = console()
    plain = terminal_is_plain()
    names = min(max(len(series["key"]) for series in metrics), _LONGEST_NAME)
    columns = [
        ("last", [_cell(series["last"]) for series in metrics]),
        ("min", [_cell(series["minimum"]) for series in metrics]),
        ("max", [_cell(series["maximum"]) for series in metrics]),
    ]
    widths = [max(len(title), *map(len, cells)) for title, cells in columns]
    curve = max(8, min(_CURVE, out.width - 2 - names - sum(width + 2 for width in widths) - 2))
    titles = (f"{title:>{width}}" for (title, _), width in zip(columns, widths, strict=True))
    head = f"metrics ({steps} steps)"
    out.print(f"\n{head:<{names + curve + 4}}  {'  '.join(titles)}", style="bold", soft_wrap=True)
    for place, series in enumerate(metrics):
        cells = (
            f"{cells[place]:>{width}}" for (_, cells), width in zip(columns, widths, strict=True)
        )
        drawn = sparkline(thinned(series["values"], curve), plain=plain)
        out.print(f"  {series['key']:<{names}}  ", end="", soft_wrap=True)
        out.print(f"{drawn:<{curve}}", style="cyan", end="", soft_wrap=True)
        out.print(f"  {'  '.join(cells)}", soft_wrap=True)


def _cell(value: object) -> str:
    return "-" if value is None else number(value)
