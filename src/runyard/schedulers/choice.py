"""Which schedulers there are, and which one is asked."""

from __future__ import annotations

import os
import shutil
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runyard.schedulers.protocol import Scheduler

HERE = "here"
# What `--on` calls a scheduler: its package, its class, whether it has a queue, and the command
# without which nobody looks further for its cluster. Every command reads this table and few need a
# scheduler, so none is loaded for it.
_SCHEDULERS = {
    HERE: ("local", "Local", False, ""),
    "slurm": ("slurm", "Slurm", True, ""),
    "gridengine": ("gridengine", "GridEngine", True, "qsub"),
}
# Which one is meant where neither a command nor this variable says so, and none is found.
VARIABLE = "RUNYARD_SCHEDULER"
_USUAL = "slurm"
# What `--on` takes.
NAMES = tuple(_SCHEDULERS)
_chosen: str | None = None


def named(name: str, environ: Mapping[str, str] | None = None) -> Scheduler:
    package, class_name, *_ = _SCHEDULERS[name]
    module = import_module(f"runyard.schedulers.{package}.scheduler")
    scheduler: Scheduler = getattr(module, class_name)(environ)
    return scheduler


def has_queue(name: str | None) -> bool:
    """Whether work is sent as jobs, and not done in the foreground. No: where nobody has said."""
    return bool(name) and _SCHEDULERS[name or ""][2]


def choose(name: str | None) -> None:
    """Have `cluster` mean this scheduler for the rest of the command, if it has a queue."""
    global _chosen
    _chosen = name if has_queue(name) else None


def cluster(environ: Mapping[str, str] | None = None) -> Scheduler:
    """The scheduler that has this cluster's jobs."""
    return named(_chosen or cluster_kind(environ), environ)


def cluster_kind(environ: Mapping[str, str] | None = None) -> str:
    """Which scheduler is here, by the name that `--on` takes."""
    variables = os.environ if environ is None else environ
    name = variables.get(VARIABLE)
    if name in _SCHEDULERS and has_queue(name):
        return name
    for other, (_, _, _, command) in _SCHEDULERS.items():
        is_there = command and shutil.which(command, path=variables.get("PATH"))
        if is_there and named(other, environ).is_here() and not named(_USUAL, environ).is_here():
            return other
    return _USUAL
