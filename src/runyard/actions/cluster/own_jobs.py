"""Jobs of runyard's own, remembered by the server beside those of sweeps."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from runyard.client.discover import find_server
from runyard.errors import RunyardError
from runyard.home import Home

if TYPE_CHECKING:
    from runyard.shapes.jobs import NewJob


def remember(home: Home, kind: str, ids: list[str], folder: str, submitted_at: float) -> None:
    """Have the server list them, where it is up; told twice is told once."""
    from runyard.schedulers.choice import cluster

    api = find_server(home)
    if api is None:
        return
    for job_id in ids:
        new: NewJob = {
            "cluster": cluster().cluster_name() or "",
            "job_id": job_id,
            "kind": kind,
            "name": f"runyard-{kind}",
            "submitted_at": submitted_at,
            "folder": folder,
            "log_pattern": f"{folder}/%j.log",
        }
        with contextlib.suppress(RunyardError):  # A list that lacks a line stops nobody's work.
            api.jobs.record(new)
    api.close()
