"""Which schedulers there are, and which one is asked."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runyard.schedulers.protocol import Scheduler

HERE = "here"
# What `--on` calls a scheduler: its package, its class, and whether it has a queue. Every command
# reads this table and few need a scheduler, so none is loaded for it.
_SCHEDULERS = {
    HERE: ("local", "Local", False),
    "slurm": ("slurm", "Slurm", True),
    "gridengine": ("gridengine", "GridEngine", True),
}
# The one that has the cluster's jobs.
CLUSTER = "slurm"
# What `--on` takes. Not Grid Engine (`named` gives it): `launch/script.py` writes for Slurm alone.
NAMES = (HERE, CLUSTER)


def named(name: str, environ: Mapping[str, str] | None = None) -> Scheduler:
    package, class_name, _ = _SCHEDULERS[name]
    module = import_module(f"runyard.schedulers.{package}.scheduler")
    scheduler: Scheduler = getattr(module, class_name)(environ)
    return scheduler


def has_queue(name: str | None) -> bool:
    """Whether work is sent as jobs, and not done in the foreground. No: where nobody has said."""
    return bool(name) and _SCHEDULERS[name or ""][2]


def cluster(environ: Mapping[str, str] | None = None) -> Scheduler:
    """The scheduler that has this cluster's jobs."""
    return named(CLUSTER, environ)
