"""What a sweep would be, without making it."""

from __future__ import annotations

import shlex
from dataclasses import asdict

from runyard.actions.sweeping.sweep import first_trials
from runyard.actions.sweeping.sweep_plan import Plan
from runyard.cli.output import console, print_json


def preview(plan: Plan, *, as_json: bool) -> None:
    trials = first_trials(plan)
    if as_json:
        print_json({"method": plan.sweep.method, "trials": plan.size, "folder": str(plan.folder),
                    "first": [asdict(trial) for trial in trials]})  # fmt: skip
        return
    out = console()
    size = "no end of its own (run_cap sets one)" if plan.size is None else f"{plan.size} trials"
    metric = "".join(f", {objective.goal} {objective.name}" for objective in plan.sweep.metrics)
    out.print(f"{plan.source}: {plan.sweep.method}{metric}: {size}", style="bold", soft_wrap=True)
    out.print(f"  programs run in {plan.folder}", soft_wrap=True)
    if plan.sweep.method not in ("grid", "random"):
        out.print("  the first trials could be these; later ones follow from results")
    for trial in trials:
        out.print(f"\n{trial.name}", style="bold", soft_wrap=True)
        out.print(f"  {shlex.join(trial.command)}", soft_wrap=True)
    left = None if plan.size is None else plan.size - len(trials)
    if left is None or left > 0:
        out.print(f"\n... and {'more' if left is None else f'{left} more'}")
    out.print("\nnothing was made; without --dry-run it begins", soft_wrap=True)
