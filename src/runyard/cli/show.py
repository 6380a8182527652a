"""Show a run: its config, its summary, and each metric as a curve.

RUN is an id, the beginning of one, a name, or PROJECT/any of these; without it, the newest run.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from typing import Any

from runyard.cli.connect import complete_run, server
from runyard.cli.output import (
    STATE_COLOURS,
    ago,
    console,
    duration,
    number,
    print_json,
)
from runyard.cli.sparkline import sparkline, terminal_is_plain
from runyard.client.api import Api, RunDetail, Series
from runyard.errors import NotFoundError

_CURVE = 32


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run_argument(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_run_argument(parser: argparse.ArgumentParser) -> None:
    argument = parser.add_argument(
        "run", nargs="?", metavar="RUN", help="which run (default: the newest)"
    )
    argument.completer = complete_run  # type: ignore[attr-defined]


def find_run(api: Api, words: str | None) -> RunDetail:
    """The run that the user named, or the newest."""
    if words is None:
        newest = api.runs(limit=1)
        if not newest:
            raise NotFoundError(
                "there are no runs yet", mend="`runyard run -- python train.py` makes one"
            )
        words = f"{newest[0]['project']}/{newest[0]['id']}"
    try:
        return api.run(words)
    except NotFoundError as error:
        error.mend = "`runyard runs` lists them"
        raise


def run(args: argparse.Namespace) -> int:
    api = server()
    detail = find_run(api, args.run)
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
    for line in _facts(detail):
        out.print(f"  {line}", soft_wrap=True)
    _print_section("config", [(key, number(value)) for key, value in detail["config"].items()])
    _print_metrics(metrics, detail["steps"])
    drawn = {series["key"] for series in metrics}
    rest = [
        (key, number(value))
        for key, value in detail["summary"].items()
        if not key.startswith("_") and key not in drawn
    ]
    _print_section("summary", rest)
    return 0


def _facts(detail: RunDetail) -> Iterator[str]:
    if detail["command"]:
        yield shlex.join(detail["command"])
    elif detail["program"]:
        yield detail["program"]
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
    out.print(f"\nmetrics ({steps} steps)", style="bold")
    plain = terminal_is_plain()
    names = min(max(len(series["key"]) for series in metrics), 24)
    for series in metrics:
        curve = sparkline(series["values"], plain=plain)
        numbers = "  ".join(
            f"{label} {number(value)}" for label, value in _numbers(series) if value is not None
        )
        out.print(f"  {series['key']:<{names}}  ", end="", soft_wrap=True)
        out.print(curve, style="cyan", end="", soft_wrap=True)
        out.print(f"{' ' * (_CURVE - len(curve))}  {numbers}", soft_wrap=True)


def _numbers(series: Series) -> Iterator[tuple[str, Any]]:
    yield "last", series["last"]
    yield "min", series["minimum"]
    yield "max", series["maximum"]
