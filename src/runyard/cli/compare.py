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

from runyard.cli.completers import complete_run, complete_sweep
from runyard.cli.connect import server
from runyard.cli.output import console, number, print_json, print_table, say
from runyard.cli.sparkline import sparkline, terminal_is_plain, thinned
from runyard.client.api import Api, Run
from runyard.client.sweeps import Sweep
from runyard.errors import NotFoundError, UsageError
from runyard.report.differences import Difference, Sample, compare, in_words
from runyard.report.sides import MISSING, Side, are_repeats, differing, find_runs, side_of

_CURVE = 32
_SHOWN = 12  # Metrics in the table, unless they are named.


def add_arguments(parser: argparse.ArgumentParser) -> None:
    sides = parser.add_argument(
        "side", nargs="+", metavar="RUN|SWEEP", help="what to compare; the first is the baseline"
    )
    sides.completer = lambda prefix, **rest: [  # type: ignore[attr-defined]
        *complete_run(prefix, **rest), *complete_sweep(prefix, **rest)
    ]  # fmt: skip
    parser.add_argument("--metric", action="append", default=[],
                        help="compare by this one (default: the sweeps', or all)")  # fmt: skip
    parser.add_argument("--goal", choices=("minimize", "maximize"),
                        help="which way is better (default: the sweeps')")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    if len(args.side) < 2:
        raise UsageError(
            "one side alone cannot be compared", mend="name a second run or sweep behind it"
        )
    api = server()
    found = [_find(api, words) for words in args.side]
    sides = [side for side, _ in found]
    metrics = _metrics(sides, args.metric, [sweep for _, sweep in found])
    goals = {_goal(sweep) for _, sweep in found if sweep} - {None}
    goal = args.goal or (goals.pop() if len(goals) == 1 else None)
    samples = {name: [side.sample(name) for side in sides] for name in metrics}
    told = {name: compare(one[0], one[1:]) for name, one in samples.items()}
    settings = differing(sides)
    if args.json:
        print_json(_as_data(sides, settings, samples, told))
        return 0
    _print(api, sides, settings, samples, told, goal)
    return 0


def _find(api: Api, words: str) -> tuple[Side, Sweep | None]:
    """A run, several runs, or what a sweep stands for."""
    try:
        return side_of(words, find_runs(api, words)), None
    except NotFoundError as missing:
        try:
            sweep = api.sweeps.find(words)
        except NotFoundError:
            missing.mend = "`runyard runs` and `runyard sweeps` list what there is"
            raise missing from None
    label = words if words == sweep["id"] else f"{words} ({sweep['id']})"
    return side_of(label, _of_sweep(api, sweep)), sweep


def _of_sweep(api: Api, sweep: Sweep) -> list[Run]:
    from runyard.actions.results.best import best_of

    ended = api.sweeps.trials(sweep["key"], state="finished")
    if not are_repeats([one["values"] for one in ended]):
        settings, _aims = best_of(api, sweep)
        if not settings:
            raise UsageError(
                f"sweep {sweep['id']} has several settings, and no metric says which is its best",
                mend="name the runs instead: runyard compare a1,a2 b1,b2",
            )
        ended = list(settings[0].trials)
    wanted = {one["id"] for one in ended}
    return [run for run in api.runs(sweep=sweep["key"]) if run["id"] in wanted]


def _goal(sweep: Sweep | None) -> str | None:
    return sweep["goal"] if sweep else None


def _metrics(
    sides: Sequence[Side], named: Sequence[str], sweeps: Sequence[Sweep | None]
) -> list[str]:
    common = set.intersection(*(side.metrics() for side in sides))
    for name in named:
        if name not in common:
            raise NotFoundError(
                f"not every run has a number named {name}",
                mend=f"they have in common: {', '.join(sorted(common)) or 'nothing'}",
            )
    if named:
        return list(dict.fromkeys(named))
    searched = {one["metric"] for one in sweeps if one and one["metric"]}
    if searched and searched <= common:
        return sorted(searched)
    return sorted(common)


def _as_data(
    sides: Sequence[Side],
    settings: Sequence[tuple[str, list[Any]]],
    samples: dict[str, list[Sample]],
    told: dict[str, list[Difference]],
) -> dict[str, Any]:
    return {
        "sides": [
            {
                "label": side.label,
                "runs": [one["id"] for one in side.runs],
                "config": side.config,
                "metrics": {
                    name: {
                        "values": list(of_sides[place].values),
                        "mean": of_sides[place].mean,
                        "deviation": of_sides[place].deviation,
                    }
                    for name, of_sides in samples.items()
                },
                "less_the_first": {
                    name: differences[place - 1].to_json() for name, differences in told.items()
                }
                if place
                else None,
            }
            for place, side in enumerate(sides)
        ],
        "differing": [name for name, _ in settings],
    }


def _print(
    api: Api,
    sides: Sequence[Side],
    settings: Sequence[tuple[str, list[Any]]],
    samples: dict[str, list[Sample]],
    told: dict[str, list[Difference]],
    goal: str | None,
) -> None:
    labels = [_label(side) for side in sides]
    if settings:
        print_table(
            ("SETTING", *labels, ""),
            ((name, *map(_cell, values), "") for name, values in settings),
        )
        console().print()
    shown = list(samples)[:_SHOWN]
    if not shown:
        say("the sides have no number in common: their summaries hold no result of the same name")
        return
    print_table(
        ("METRIC", *labels, ""),
        ((name, *map(_measure, samples[name]), "") for name in shown),
    )
    if len(samples) > len(shown):
        say(f"{len(samples)} metrics in common: --metric NAME chooses")
    console().print()
    _print_curves(api, sides, labels, shown[0])
    maximize = None if goal is None else goal == "maximize"
    for name in shown:
        for label, difference in zip(labels[1:], told[name], strict=True):
            console().print(in_words(label, labels[0], difference, name, maximize=maximize))


def _print_curves(api: Api, sides: Sequence[Side], labels: Sequence[str], metric: str) -> None:
    plain = terminal_is_plain()
    rows = []
    for side, label in zip(sides, labels, strict=True):
        logged = {one["key"]: one for one in api.metrics(side.runs[0], points=_CURVE)}
        if metric not in logged or logged[metric]["count"] < 2:
            return  # Not logged step by step: there is no curve.
        rows.append((label, sparkline(thinned(logged[metric]["values"], _CURVE), plain=plain)))
    print_table((metric, "CURVE"), rows)
    console().print()


def _label(side: Side) -> str:
    return side.label if len(side.runs) == 1 else f"{side.label} (n={len(side.runs)})"


def _cell(value: Any) -> str:
    return repr(value) if value is MISSING else number(value)


def _measure(sample: Sample) -> str:
    deviation = sample.deviation
    mean = number(sample.mean)
    return mean if deviation is None else f"{mean} ± {number(deviation)}"
