"""Completion of what is typed: runs, sweeps, jobs, projects, files."""

from __future__ import annotations

from runyard.client.discover import find_server
from runyard.home import locate

NAMED = "SWEEP|TRIAL|JOB"


def complete_named(prefix: str, **_: object) -> list[str]:
    return [*complete_sweep(prefix), *complete_run(prefix), *complete_job(prefix)]


def complete_job(prefix: str, **_: object) -> list[str]:
    """Completion of a job's number. Never starts anything, and never fails."""
    try:
        api = find_server(locate())
        found = api.jobs.jobs(limit=100) if api else []
    except Exception:
        return []
    return [job["job_id"] for job in found if job["job_id"].startswith(prefix)]


def complete_run(prefix: str, **_: object) -> list[str]:
    """Completion of a run's id. Never starts anything, and never fails."""
    try:
        api = find_server(locate())
        runs = api.runs(limit=200) if api else []
    except Exception:
        return []
    return [run["id"] for run in runs if run["id"].startswith(prefix)]


def complete_sweep(prefix: str, **_: object) -> list[str]:
    """Completion of a sweep's id or name. Never starts anything, and never fails."""
    try:
        api = find_server(locate())
        found = api.sweeps.sweeps(limit=100) if api else []
    except Exception:
        return []
    names = dict.fromkeys(name for one in found for name in (one["id"], one["name"]))
    return [name for name in names if name.startswith(prefix)]


def complete_project(prefix: str, **_: object) -> list[str]:
    """Completion of a project's name. Never starts anything, and never fails."""
    try:
        api = find_server(locate())
        found = api.projects() if api else []
    except Exception:
        return []
    return [name for name in dict.fromkeys(one["name"] for one in found) if name.startswith(prefix)]


def complete_file(prefix: str, **_: object) -> list[str]:
    from argcomplete.completers import FilesCompleter

    found: list[str] = FilesCompleter()(prefix)
    return found


def complete_sweep_or_file(prefix: str, **_: object) -> list[str]:
    from argcomplete.completers import FilesCompleter

    return [*complete_sweep(prefix), *FilesCompleter(("yaml", "yml", "json"))(prefix)]
