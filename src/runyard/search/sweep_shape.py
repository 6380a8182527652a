"""A sweep file's contents, typed. `sweep.py` reads them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from runyard.search.early_terminate import EarlyTerminate
from runyard.search.objectives import Constraint, Metric
from runyard.search.options import Options
from runyard.search.space import Space


@dataclass(frozen=True)
class Sweep:
    """What a sweep file says. `method` is the one that searches, W&B's or runyard's."""

    method: str
    space: Space
    metrics: tuple[Metric, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    early_terminate: EarlyTerminate | None = None
    run_cap: int | None = None
    program: str | None = None
    command: tuple[Any, ...] | None = None
    name: str | None = None
    description: str | None = None
    entity: str | None = None
    project: str | None = None
    controller: str = "cloud"
    # The engine of a scheduler on somebody's machine, which chooses the trials.
    scheduler: str | None = None
    options: Options = field(default_factory=Options)
