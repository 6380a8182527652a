"""What a sweep would be, without making it."""

from __future__ import annotations

import os
import shlex
from typing import Any

from runyard.actions.sweep_plan import Plan
from runyard.cli.output import console, print_json
from runyard.node.attempt.command_line import expand
from runyard.search.grid import point_at
from runyard.search.names import trial_name

_SHOWN = 5


def preview(plan: Plan, *, as_json: bool) -> None:
    trials = _first_trials(plan)
    if as_json:
        print_json({"method": plan.sweep.method, "trials": plan.size, "folder": str(plan.folder),
                    "first": trials})  # fmt: skip
        return
    out = console()
    size = "no end of its own (run_cap sets one)" if plan.size is None else f"{plan.size} trials"
    metric = "".join(f", {one.goal} {one.name}" for one in plan.sweep.metrics)
    out.print(f"{plan.source}: {plan.sweep.method}{metric}: {size}", style="bold", soft_wrap=True)
    out.print(f"  programs run in {plan.folder}", soft_wrap=True)
    if plan.sweep.method not in ("grid", "random"):
        out.print("  the first trials could be these; later ones follow from results")
    for trial in trials:
        out.print(f"\n{trial['name']}", style="bold", soft_wrap=True)
        out.print(f"  {shlex.join(trial['command'])}", soft_wrap=True)
    left = None if plan.size is None else plan.size - len(trials)
    if left is None or left > 0:
        out.print(f"\n... and {'more' if left is None else f'{left} more'}")
    out.print("\nnothing was made; without --dry-run it begins", soft_wrap=True)


def _first_trials(plan: Plan) -> list[dict[str, Any]]:
    sweep, taken = plan.sweep, set[str]()
    found = []
    for settings in _first_settings(plan):
        swept = sweep.space.swept(settings)
        if sweep.options.seeds:
            swept[sweep.options.seed_parameter] = settings[sweep.options.seed_parameter]
        name = trial_name(swept, taken.__contains__, sweep.options.name)
        taken.add(name)
        command = expand(
            sweep.command, sweep.program, settings, os.environ, lambda _text: "PARAMETERS.json"
        )
        found.append({"name": name, "values": settings, "command": command})
    return found


def _first_settings(plan: Plan) -> list[dict[str, Any]]:
    import numpy as np

    sweep = plan.sweep
    most = _SHOWN if plan.size is None else min(_SHOWN, plan.size)
    seeds = sweep.options.seeds or (None,)
    settings = []
    for place in range(most):
        index, seed = divmod(place, len(seeds))
        if sweep.method == "grid":
            one = point_at(sweep.space, index)
        else:
            rng = np.random.default_rng([sweep.options.seed or 0, index])
            one = sweep.space.decode(sweep.space.draw(rng))
        if sweep.options.seeds:
            one = {**one, sweep.options.seed_parameter: seeds[seed]}
        settings.append(one)
    return settings
