"""Which scheduler is asked."""

from __future__ import annotations

from collections.abc import Mapping

from runyard.schedulers.protocol import Scheduler


def cluster(environ: Mapping[str, str] | None = None) -> Scheduler:
    """The one that has this cluster's jobs."""
    from runyard.schedulers.slurm.scheduler import Slurm

    return Slurm(environ)
