"""The note that the server is a job: which jobs, so that nobody starts it anywhere else."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict, dataclass, fields

from runyard.home import Home, write_whole


@dataclass(frozen=True)
class ServerJobs:
    """Jobs that take the server over from each other, in this order."""

    ids: list[str]
    folder: str
    """Where their logs are."""
    submitted_at: float

    def said(self) -> str:
        named = "job" if len(self.ids) == 1 else "jobs"
        return f"{named} {', '.join(self.ids)}"


def read_server_jobs(home: Home) -> ServerJobs | None:
    try:
        content = json.loads(home.server_jobs.read_text(encoding="utf-8"))
        jobs = ServerJobs(**{field.name: content[field.name] for field in fields(ServerJobs)})
    except (OSError, ValueError, TypeError, LookupError):
        return None
    return jobs if isinstance(jobs.ids, list) and jobs.ids else None


def write_server_jobs(home: Home, jobs: ServerJobs) -> None:
    write_whole(home.server_jobs, json.dumps(asdict(jobs), indent=1) + "\n")


def forget_server_jobs(home: Home) -> None:
    with contextlib.suppress(OSError):
        home.server_jobs.unlink()
