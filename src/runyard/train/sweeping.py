"""Trials of a W&B sweep inside a program: their values, their names, one for all ranks."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from runyard.train import exchange
from runyard.train.errors import TrainError
from runyard.train.parameters import Params
from runyard.train.values import parse

_FAILED, _NONE_LEFT, _TRIAL = "failed", "none left", "trial"


def swept_values() -> dict[str, Any]:
    """The values that an agent chose for this process, known before `wandb.init`; else none."""
    path = os.environ.get("WANDB_SWEEP_PARAM_PATH")
    if not path or not Path(path).exists():
        return {}
    return {
        name: parse(entry["value"]) if isinstance(entry["value"], str) else entry["value"]
        for name, entry in Params.load(path).plain().items()
        if isinstance(entry, dict) and "value" in entry
    }


def trial_name(base: str, values: Mapping[str, Any], run_id: str | None = None) -> str:
    """A name for a trial, for its folder too: 'cnn_lr1em5_batchsize16-x1y2z3', from any values.

    The run's id at its end, by default that of the trial which an agent started (WANDB_RUN_ID),
    keeps trials of equal values apart.
    """
    if run_id is None:
        run_id = os.environ.get("WANDB_RUN_ID", "")
    words = [f"{name.replace('_', '')}{_short(value)}" for name, value in values.items()]
    name = "_".join([base, *words]) + (f"-{run_id}" if run_id else "")
    return re.sub(r"[^\w.+=,-]", "", name)


def sweep_trial(
    sweep: str,
    function: Callable[[dict[str, Any]], None],
    *,
    project: str | None = None,
    entity: str | None = None,
) -> bool:
    """Take one trial of a sweep and call `function(values)` on every rank. False if none is left.

    Rank 0 asks W&B; the others get the values from it before `function` is called. Without a trial
    all ranks return at once, and if rank 0 fails to get one all of them fail at once. On rank 0
    `wandb.init` inside the function opens the trial's run.
    """
    if exchange.rank() != 0:
        waiting: tuple[str, Any] = (_TRIAL, {})
        outcome, values = exchange.gather("a trial of the sweep", waiting)[0]
        if outcome == _FAILED:
            raise TrainError(f"rank 0 could not take a trial of sweep {sweep}", said=values)
        if outcome == _TRIAL:
            function(values)
        return outcome == _TRIAL
    is_told = False
    raised: list[BaseException] = []

    def run_trial() -> None:
        nonlocal is_told
        values = swept_values()
        is_told = True
        exchange.gather("a trial of the sweep", (_TRIAL, values))
        try:
            function(values)
        except BaseException as error:
            # The agent's thread would swallow it, the exit code that means 'go on' too.
            raised.append(error)

    try:
        agent = import_module("wandb").agent
        agent(sweep, function=run_trial, count=1, project=project, entity=entity)
    except BaseException as error:
        if not is_told:
            exchange.gather("a trial of the sweep", (_FAILED, f"{type(error).__name__}: {error}"))
        raise
    if not is_told:
        exchange.gather("a trial of the sweep", (_NONE_LEFT, {}))
    if raised:
        raise raised[0]
    return is_told


def _short(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, float):
        if isinstance(value, (list, tuple)):
            return "x".join(_short(item) for item in value)
        return str(value)
    mantissa, _, exponent = f"{value:.2e}".partition("e")
    power = int(exponent)
    if -3 < power < 4:
        return f"{value:.4g}"
    digits = mantissa.rstrip("0").rstrip(".")
    return f"{digits}e{'m' if power < 0 else ''}{abs(power)}"
