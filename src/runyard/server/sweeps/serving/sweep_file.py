"""A sweep's file, read: what the ledger keeps of it, and what draws its trials."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from runyard.reading.documents import DocumentError, read_document
from runyard.reading.problems import Problem
from runyard.search.command import TYPED
from runyard.search.sweep import Asha, Sweep, read_sweep
from runyard.server.sweeps.policy.rules import Aim, Limit, Rules


class BadSweep(ValueError):
    """The file cannot be a sweep; every problem is named."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(f"{problem.message}: {problem.mend}" for problem in problems))
        self.problems = problems


@dataclass(frozen=True)
class SweepFile:
    """A file that was found good."""

    text: str
    data: Any
    sweep: Sweep
    warnings: Sequence[Problem] = ()

    @property
    def config(self) -> str:
        return json.dumps(self.data, default=str)

    @property
    def rules(self) -> Rules:
        return rules_of(self.sweep)

    @property
    def size(self) -> int | None:
        return self.sweep.space.size if self.sweep.method == "grid" else None


def read_file(given: str | dict[str, Any]) -> SweepFile:
    """Read a sweep's file, as text (YAML or JSON) or as data. Takes its time on a large one."""
    text = given if isinstance(given, str) else json.dumps(given)
    try:
        data = read_document(text, typed=TYPED).data if isinstance(given, str) else given
    except DocumentError as error:
        place = f"line {error.line}: " if error.line else ""
        raise BadSweep([Problem((), f"{place}{error}", error.mend)]) from error
    sweep, problems = read_sweep(data)
    if sweep is None:
        raise BadSweep([problem for problem in problems if problem.is_error])
    return SweepFile(text, data, sweep, problems)


def rules_of(sweep: Sweep) -> Rules:
    return Rules(
        aims=tuple(
            Aim(metric.name, metric.goal == "maximize", metric.target, metric.impute)
            for metric in sweep.metrics
        ),
        limits=tuple(
            Limit(constraint.metric, constraint.bound, constraint.direction == "min")
            for constraint in sweep.constraints
        ),
        retries=dict(sweep.options.retries),
        seeds=max(1, len(sweep.options.seeds)),
        retry_failed=sweep.options.retry_failed,
        stop_after_failures=sweep.options.stop_after_failures,
        nan=sweep.options.nan,
        promotes=isinstance(sweep.early_terminate, Asha)
        and sweep.early_terminate.form == "promotion",
        draws=sweep.method != "custom" and sweep.controller != "local",
    )
