"""The best trials of a sweep, or its Pareto front."""

from __future__ import annotations

from collections.abc import Sequence

from runyard.client.api import Api
from runyard.report.settings import Aim, Setting, ranked, settings_of
from runyard.shapes.sweeps import Sweep, Trial
from runyard.vocabulary import RESULT_STATES


def best_of(api: Api, sweep: Sweep) -> tuple[list[Setting], list[Aim]]:
    """A sweep's settings, the best first, or its Pareto front; and what it is after."""
    from runyard.search.sweep import read_sweep

    config, _ = read_sweep(sweep["config"])
    if config is None or not config.metrics:
        return [], []
    aims = [Aim(metric.name, metric.goal == "maximize") for metric in config.metrics]
    if config.options.tasks:
        return _best_tasks(api.sweeps.trials(sweep["key"]), aims)
    seed_parameter = config.options.seed_parameter if config.options.seeds else None
    trials = [trial for trial in api.sweeps.trials(sweep["key"]) if trial["state"] in RESULT_STATES]
    for trial in trials:
        # What all have in common tells nothing.
        seed = {k: v for k, v in trial["values"].items() if k == seed_parameter}
        trial["values"] = {**config.space.swept(trial["values"]), **seed}
    return ranked(settings_of(trials, aims, seed_parameter), aims), aims


def last_values(
    api: Api, sweep: Sweep, settings: Sequence[Setting], aims: Sequence[Aim]
) -> list[list[float | None]]:
    """Of each setting and each metric the mean of what stands in its runs' summaries; None: no
    number."""
    summaries = {run["key"]: run["summary"] for run in api.runs(sweep=sweep["key"])}

    def mean(setting: Setting, aim: Aim) -> float | None:
        values = [summaries.get(trial["run"] or 0, {}).get(aim.name) for trial in setting.trials]
        numbers = [value for value in values if isinstance(value, int | float)]
        return sum(numbers) / len(numbers) if numbers else None

    return [[mean(setting, aim) for aim in aims] for setting in settings]


def _best_tasks(trials: list[Trial], aims: list[Aim]) -> tuple[list[Setting], list[Aim]]:
    """Of a list of command lines: by what stands in them, those of several seeds together."""
    from runyard.config.task_list import SEED
    from runyard.search.tasks import COMMAND_LINE, NUMBER

    counted = [trial for trial in trials if trial["state"] in RESULT_STATES]
    for trial in counted:
        trial["values"] = {
            name: value
            for name, value in trial["values"].items()
            if name not in (NUMBER, COMMAND_LINE)
        }
    has_seeds = any(SEED in trial["values"] for trial in counted)
    return ranked(settings_of(counted, aims, SEED if has_seeds else None), aims), aims
