"""What a job of Grid Engine's knows of itself, from inside. The standard library alone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_NO_TASK = "undefined"


@dataclass(frozen=True)
class GridEngineJob:
    """A job, or one task of an array."""

    job_id: str
    task: int | None
    slots: int
    nodes: tuple[str, ...]
    """The hosts of a parallel job, the first one first."""
    folder: str | None
    """On the node's own disk; Grid Engine makes it and removes it."""
    queue: str | None
    restarts: int

    @property
    def name(self) -> str:
        """123, or 123_4 in an array: as `poll` and `cancel` have it."""
        return self.job_id if self.task is None else f"{self.job_id}_{self.task}"


def this_job(environ: Mapping[str, str] | None = None) -> GridEngineJob | None:
    """The job that this process runs in; None outside of one."""
    variables = os.environ if environ is None else environ
    # JOB_ID alone is a name that others use too.
    if "JOB_ID" not in variables or "SGE_TASK_ID" not in variables:
        return None
    task = variables["SGE_TASK_ID"]
    return GridEngineJob(
        job_id=variables["JOB_ID"],
        task=None if task == _NO_TASK else int(task),
        slots=int(variables.get("NSLOTS", "1")),
        nodes=_hosts(variables.get("PE_HOSTFILE")) or (variables.get("HOSTNAME", ""),),
        folder=variables.get("TMPDIR"),
        queue=variables.get("QUEUE"),
        restarts=int(variables.get("RESTARTED", "0")),
    )


def _hosts(path: str | None) -> tuple[str, ...]:
    """The first word of each line: HOST SLOTS QUEUE CORES."""
    try:
        lines = Path(path).read_text().splitlines() if path else []
    except OSError:
        return ()
    return tuple(dict.fromkeys(line.split()[0] for line in lines if line.strip()))
