"""Make a sweep of a file, for agents here or on the cluster; or join one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from runyard.actions.connect import open_server
from runyard.actions.estimates import Subject, estimate_here, options_of_kind
from runyard.actions.events import Notice, Notify
from runyard.actions.submitting.submission import ClusterOptions, Outcome, submit_for
from runyard.actions.sweeping.sweep_plan import Plan
from runyard.client.api import Api
from runyard.config.flags import Flags
from runyard.errors import UsageError
from runyard.node.attempt.command_line import expand
from runyard.printable import numbered
from runyard.search.budget import BadBudget, parse_budget
from runyard.search.by_number import point_at
from runyard.search.names import trial_name
from runyard.shapes.sweeps import Sweep
from runyard.vocabulary import CLOSED_STATES

_FIRST = 5


def create_sweep(plan: Plan, prior_runs: Sequence[str], notify: Notify) -> Sweep:
    sweep = open_server(notify).sweeps.create(
        plan.config,
        project=plan.owner.project,
        entity=plan.owner.entity,
        folder=str(plan.folder),
        prior_runs=prior_runs,
        seed=plan.sweep.options.seed,
    )
    expected = sweep["expected"]
    size = "no end of its own" if expected is None else numbered(expected, "trial")
    name = "" if sweep["name"] == sweep["id"] else f" ({sweep['name']})"
    notify(Notice(f"sweep {sweep['id']}{name}: {sweep['method']}, {size}"))
    return sweep


def submit_sweep(
    plan: Plan,
    flags: Flags,
    slots: int,
    prior_runs: Sequence[str],
    cluster: ClusterOptions,
    notify: Notify,
) -> Outcome:
    """Agents for a sweep that is made when all else is sure, as jobs of the cluster."""
    from runyard.actions.submitting.planning import SubmissionRequest, plan_submission

    wanted = SubmissionRequest(
        "sweep",
        plan.folder,
        plan.size,
        flags,
        slots,
        cluster,
        subject=lambda project: _subject(plan, project.gauge.by),
    )
    submission = plan_submission(wanted, notify)
    return submit_for(submission, lambda: create_sweep(plan, prior_runs, notify), cluster, notify)


def estimate_sweep(
    plan: Plan, slots: int | None, notify: Notify, sweep: Sweep | None = None
) -> None:
    """How long it will take on this machine, where that is known; kept with the sweep."""
    subject = _subject(plan, options_of_kind(plan.folder))
    estimate_here(subject, plan.size, slots, notify, sweep)


def _subject(plan: Plan, by: Sequence[str]) -> Subject:
    from runyard.gauge.kinds import kind_of_sweep

    sweep = plan.sweep
    constants = {leaf.path[0]: leaf.value for leaf in sweep.space.constants if len(leaf.path) == 1}
    kind = kind_of_sweep(sweep.command, sweep.program, constants, by)
    return Subject(kind, plan.owner.project, plan.owner.entity)


def change_bounds(api: Api, sweep: Sweep, run_cap: int | None, budget: str | None) -> Sweep:
    """The sweep with another cap or budget, where one is wanted."""
    if run_cap:
        sweep = api.sweeps.set_cap(sweep["key"], run_cap)
    if budget:
        try:
            sweep = api.sweeps.set_budget(sweep["key"], str(parse_budget(budget)))
        except BadBudget as error:
            raise UsageError(f"--budget {budget}: {error}", mend=error.mend) from error
    return sweep


def join_sweep(sweep: Sweep, notify: Notify) -> Sweep:
    """A sweep that can be worked on."""
    if sweep["state"] in CLOSED_STATES:
        failed = sweep["counts"]["failed"]
        again = f"`runyard retry {sweep['id']}` runs the {failed} that failed; "
        raise UsageError(
            f"sweep {sweep['id']} has ended: {sweep['state']}",
            said=sweep["cause"],
            mend=f"{again if failed else ''}`runyard show {sweep['id']} --best` shows its results",
        )
    if sweep["state"] == "paused":
        resume = f"`runyard sweep --resume {sweep['id']}` goes on"
        notify(Notice(f"sweep {sweep['id']} is paused; {resume}"))
    return sweep


@dataclass(frozen=True)
class FirstTrial:
    """What a trial of a plan would be."""

    name: str
    values: dict[str, Any]
    command: list[str]


def first_trials(plan: Plan) -> list[FirstTrial]:
    """The first few, without making anything."""
    sweep, taken = plan.sweep, set[str]()
    trials = []
    for values in _first_settings(plan):
        swept = sweep.space.swept(values)
        if sweep.options.seeds:
            swept[sweep.options.seed_parameter] = values[sweep.options.seed_parameter]
        name = trial_name(swept, taken.__contains__, sweep.options.name)
        taken.add(name)
        command = expand(
            sweep.command, sweep.program, values, os.environ, lambda _text: "PARAMETERS.json"
        )
        trials.append(FirstTrial(name, values, command))
    return trials


def _first_settings(plan: Plan) -> list[dict[str, Any]]:
    import numpy as np

    sweep = plan.sweep
    most = _FIRST if plan.size is None else min(_FIRST, plan.size)
    seeds = sweep.options.seeds or (None,)
    settings = []
    for place in range(most):
        index, seed = divmod(place, len(seeds))
        if sweep.method == "grid":
            values = point_at(sweep.space, index)
        else:
            rng = np.random.default_rng([sweep.options.seed or 0, index])
            values = sweep.space.decode(sweep.space.draw(rng))
        if sweep.options.seeds:
            values = {**values, sweep.options.seed_parameter: seeds[seed]}
        settings.append(values)
    return settings
