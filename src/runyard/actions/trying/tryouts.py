"""A few settings, spread over a sweep's space, tried here before anything is made.

Each runs for a few steps or seconds, with wandb offline in a folder that is thrown away: no sweep
and no run comes of it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runyard.actions.sweeping.sweep_plan import Plan
from runyard.gauge.tryout import CannotStart, Tryout
from runyard.node.attempt.command_line import expand
from runyard.node.attempt.parameter_file import parameter_file
from runyard.reading.units import duration
from runyard.search.by_number import point_at, quasi_random
from runyard.search.names import trial_name

ENOUGH_STEPS = 3
LOOK_EVERY = 0.2
SETTINGS = "settings"


@dataclass(frozen=True)
class Tried:
    """How one setting went."""

    name: str
    values: dict[str, Any]
    is_good: bool
    how: str
    seconds: float
    # The last lines that it printed, where it failed.
    said: str = ""


def try_settings(plan: Plan, count: int, seconds: float) -> Iterator[Tried]:
    """One after the other, each when the caller wants the next."""
    for name, values in settings_of(plan, count):
        yield try_setting(plan, name, values, seconds)


def settings_of(plan: Plan, count: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """The corners of the space first, its middle, and then an even spread."""
    sweep, taken = plan.sweep, set[str]()
    space, seeds = sweep.space, sweep.options.seeds
    for number in range(count):
        if sweep.method == "grid" and space.size is not None:
            if number >= space.size:
                return
            last = space.size - 1
            place = (0, last)[number] if number < 2 else round(last * (number - 1) / (count - 1))
            values = point_at(space, place)
        else:
            draws = _draws(len(space.leaves), number)
            values = space.decode(space.place(draws))
        if seeds:
            values = {**values, sweep.options.seed_parameter: seeds[number % len(seeds)]}
        swept = space.swept(values)
        name = trial_name(swept, lambda _name: False, sweep.options.name)
        if name not in taken:
            taken.add(name)
            yield name, values


def _draws(dimensions: int, number: int) -> list[float]:
    if number < 3:
        return [(0.0, 1.0, 0.5)[number]] * dimensions
    return quasi_random(dimensions, 0, number - 3)


def try_words(
    plan: Plan, values: dict[str, Any], tryout: Tryout, more: tuple[str, ...] = ()
) -> list[str]:
    """The command of a setting, with what it reads in the tryout's folder."""
    parameters = tryout.folder / "parameters.yaml"
    parameters.write_text(parameter_file(values))
    tryout.environ |= {"WANDB_SWEEP_ID": "check", "WANDB_SWEEP_PARAM_PATH": str(parameters)}

    def json_file(text: str) -> str:
        (tryout.folder / "parameters.json").write_text(text)
        return str(tryout.folder / "parameters.json")

    command, program = plan.sweep.command, plan.sweep.program
    return [*expand(command, program, values, tryout.environ, json_file), *more]


def try_setting(plan: Plan, name: str, values: dict[str, Any], seconds: float) -> Tried:
    metrics = [metric.name for metric in plan.sweep.metrics]
    with Tryout(name, rung=SETTINGS) as tryout:
        words = try_words(plan, values, tryout)
        return try_for_a_few_steps(tryout, words, plan.folder, seconds, metrics, values)


def try_for_a_few_steps(
    tryout: Tryout,
    words: list[str],
    folder: Path,
    seconds: float,
    metrics: list[str],
    values: dict[str, Any],
) -> Tried:
    """Until it has ended, has logged enough, or the time is over."""
    begun = time.monotonic()
    try:
        tryout.start(words, folder)
    except CannotStart as error:
        return Tried(tryout.name, values, False, str(error), 0.0)
    code = None
    while code is None and time.monotonic() < begun + seconds:
        code = tryout.wait(LOOK_EVERY)
        tryout.steps.look()
        if len(tryout.steps.rows) >= ENOUGH_STEPS:
            break
    rows = tryout.steps.rows
    code = tryout.poll()
    tryout.end()
    lasted = time.monotonic() - begun
    odd = odd_value(rows, metrics)
    is_good = code in (0, None) and odd is None
    how = how_it_went(code, len(rows), lasted) if odd is None else odd
    complaint = "" if is_good else tryout.said()
    return Tried(tryout.name, values, is_good, how, lasted, complaint)


def odd_value(rows: list[dict[str, Any]], metrics: list[str]) -> str | None:
    """What says that it cannot be used: the metric is not a number."""
    for row in rows:
        for name in metrics:
            value = row.get(name)
            if isinstance(value, float) and not math.isfinite(value):
                return f"{name} is {value}"
    return None


def how_it_went(code: int | None, rows: int, seconds: float) -> str:
    logged = f", {rows} rows logged" if rows else ""
    if code is None:
        return f"ran for {duration(seconds)}{logged}"
    if code == 0:
        return f"finished in {duration(seconds)}{logged}"
    return f"exit code {code}" if code > 0 else f"signal {-code}"
