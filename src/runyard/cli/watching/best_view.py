"""A sweep's best trials, or its Pareto front, as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runyard.actions.naming import find_sweep
from runyard.actions.results.best import best_of, last_values
from runyard.cli.output import duration, number, print_json, print_table, say
from runyard.client.api import Api
from runyard.report.settings import Aim, Setting
from runyard.shapes.sweeps import Sweep

LIMIT = 10


def show_best(api: Api, words: str | None, limit: int | None, *, as_json: bool) -> int:
    """Of a sweep in the user's words, or the newest; of a front all, unless there is a limit."""
    sweep = find_sweep(api, words)
    settings, aims = best_of(api, sweep)
    front = len(aims) > 1
    shown = settings if front and limit is None else settings[: limit or LIMIT]
    if as_json:
        best = [setting.to_json(aims) for setting in shown]
        print_json({"sweep": sweep["id"], "best": best, "front": front})
    elif not aims:
        say(f"sweep {sweep['id']} has no metric to rank its trials by: `runyard runs --sweep "
            f"{sweep['id']}` lists them")  # fmt: skip
    elif not shown:
        say(f"no trial of sweep {sweep['id']} has a value of {aims[0].name} yet")
    else:
        print_best(api, sweep, shown, aims)
        say("(best): the best value that a trial has logged; the sweep ranks by it")
        say("(last): the value in the trial's summary")
        if front:
            say(f"the Pareto front: nothing is better than one of these in all {len(aims)} metrics")
        elif len(settings) > len(shown):
            say(f"{len(settings)} in all: -l {len(settings)} shows them")
    return 0


def print_best(api: Api, sweep: Sweep, settings: Sequence[Setting], aims: Sequence[Aim]) -> None:
    """Each metric twice: what the sweep ranks by, and what stands in the summaries."""
    titles = (f"{aim.name} ({kind})" for aim in aims for kind in ("best", "last"))
    rows = []
    for setting, last in zip(settings, last_values(api, sweep, settings, aims), strict=True):
        cells: list[str] = []
        for mean, deviation, value in zip(setting.means, setting.deviations, last, strict=True):
            cells += (measure(mean, deviation), "-" if value is None else number(value))
        took = duration(sum(trial["seconds"] for trial in setting.trials) / len(setting.trials))
        rows.append((_name(setting), *cells, took, values_text(setting.values)))
    print_table(("NAME", *titles, "TIME", "VALUES"), rows)


def values_text(values: Mapping[str, Any]) -> str:
    """A trial's values in one line."""
    return "  ".join(f"{name}={number(value)}" for name, value in values.items())


def _name(setting: Setting) -> str:
    name, more = setting.trials[0]["name"], len(setting.trials) - 1
    return f"{name} (+{more})" if more else name


def measure(mean: float, deviation: float | None) -> str:
    """Over seeds: mean ± standard deviation."""
    return number(mean) if deviation is None else f"{number(mean)} ± {number(deviation)}"
