"""A sweep's best trials, or its Pareto front, as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runyard.actions.naming import find_sweep
from runyard.actions.results.best import best_of
from runyard.cli.output import duration, number, print_json, print_table, say
from runyard.client.api import Api
from runyard.report.settings import Aim, Setting

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
        print_best(shown, aims)
        if front:
            say(f"the Pareto front: nothing is better than one of these in all {len(aims)} metrics")
        elif len(settings) > len(shown):
            say(f"{len(settings)} in all: -l {len(settings)} shows them")
    return 0


def print_best(settings: Sequence[Setting], aims: Sequence[Aim]) -> None:
    print_table(
        ("NAME", *(aim.name for aim in aims), "TIME", "VALUES"),
        (
            (
                _name(setting),
                *map(measure, setting.means, setting.deviations),
                duration(sum(trial["seconds"] for trial in setting.trials) / len(setting.trials)),
                values_text(setting.values),
            )
            for setting in settings
        ),
    )


def values_text(values: Mapping[str, Any]) -> str:
    """A trial's values in one line."""
    return "  ".join(f"{name}={number(value)}" for name, value in values.items())


def _name(setting: Setting) -> str:
    name, more = setting.trials[0]["name"], len(setting.trials) - 1
    return f"{name} (+{more})" if more else name


def measure(mean: float, deviation: float | None) -> str:
    """Over seeds: mean ± standard deviation."""
    return number(mean) if deviation is None else f"{number(mean)} ± {number(deviation)}"
