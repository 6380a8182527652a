"""Compare runs or sweeps side by side: settings, results, curves, and whether they differ at all.

  runyard compare a1b2c3d4 e5f6a7b8              two runs
  runyard compare baseline new                   two `runyard repeat`s: a test over their seeds
  runyard compare a1,a2,a3 b1,b2,b3 --metric accuracy  repeats named by hand
  runyard compare sweep-a sweep-b sweep-c        the best setting of each, against the first one

A sweep stands for its best setting, with all its seeds; a list of seeds for all its runs. Where
both sides have the same seeds, they are compared seed by seed; otherwise by Welch's test. The
interval is where the true difference lies with 95 % confidence.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from runyard.actions.results.comparison import CompareRequest, Comparison, compare_sides
from runyard.cli.completers import complete_run_or_sweep
from runyard.cli.connect import server
from runyard.cli.output import console, number, print_json, print_table, say
from runyard.cli.parser import add, flag
from runyard.cli.watching.best_view import measure
from runyard.cli.watching.sparkline import sparkline, terminal_is_plain, thinned
from runyard.client.api import Api
from runyard.errors import UsageError
from runyard.report.differences import in_words
from runyard.report.sides import MISSING, Side

_CURVE = 32
_SHOWN = 12  # Metrics in the table, unless they are named.


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add(parser, "side RUN|SWEEP", "what to compare; the first is the baseline",
        nargs="+", completer=complete_run_or_sweep)  # fmt: skip
    add(parser, "--metric", "compare by this one (default: the sweeps', or all)",
        action="append", default=[])  # fmt: skip
    add(parser, "--goal", "which way is better (default: the sweeps')",
        choices=("minimize", "maximize"))  # fmt: skip
    flag(parser, "--json", "print JSON")


def run(args: argparse.Namespace) -> int:
    if len(args.side) < 2:
        raise UsageError(
            "one side alone cannot be compared", mend="name a second run or sweep behind it"
        )
    api = server()
    comparison = compare_sides(api, CompareRequest(tuple(args.side), tuple(args.metric), args.goal))
    if args.json:
        print_json(comparison.to_json())
    else:
        _print(api, comparison)
    return 0


def _print(api: Api, comparison: Comparison) -> None:
    sides, settings, samples = comparison.sides, comparison.settings, comparison.samples
    labels = [_label(side) for side in sides]
    if settings:
        print_table(
            ("SETTING", *labels, ""), ((name, *map(_cell, values), "") for name, values in settings)
        )
        console().print()
    shown = list(samples)[:_SHOWN]
    if not shown:
        say("the sides have no number in common: their summaries hold no result of the same name")
        return
    rows = []
    for name in shown:
        cells = (measure(sample.mean, sample.deviation) for sample in samples[name])
        rows.append((name, *cells, ""))
    print_table(("METRIC", *labels, ""), rows)
    if len(samples) > len(shown):
        say(f"{len(samples)} metrics in common: --metric NAME chooses")
    console().print()
    _print_curves(api, sides, labels, shown[0])
    goal = comparison.goal
    maximize = None if goal is None else goal == "maximize"
    for name in shown:
        for label, difference in zip(labels[1:], comparison.differences[name], strict=True):
            console().print(in_words(label, labels[0], difference, name, maximize=maximize))


def _print_curves(api: Api, sides: Sequence[Side], labels: Sequence[str], metric: str) -> None:
    plain = terminal_is_plain()
    rows = []
    for side, label in zip(sides, labels, strict=True):
        logged = {series["key"]: series for series in api.metrics(side.runs[0], points=_CURVE)}
        if metric not in logged or logged[metric]["count"] < 2:
            return  # Not logged step by step: there is no curve.
        rows.append((label, sparkline(thinned(logged[metric]["values"], _CURVE), plain=plain)))
    print_table((metric, "CURVE"), rows)
    console().print()


def _label(side: Side) -> str:
    return side.label if len(side.runs) == 1 else f"{side.label} (n={len(side.runs)})"


def _cell(value: Any) -> str:
    return repr(value) if value is MISSING else number(value)
