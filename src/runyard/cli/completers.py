"""Completion of what is typed: runs, sweeps, jobs, projects, files."""

from __future__ import annotations

from collections.abc import Callable

from runyard.client.api import Api
from runyard.client.discover import find_server
from runyard.home import locate

NAMED = "SWEEP|TRIAL|JOB"


def complete_named(prefix: str, **_: object) -> list[str]:
    return [*complete_sweep(prefix), *complete_run(prefix), *complete_job(prefix)]


def complete_job(prefix: str, **_: object) -> list[str]:
    """A job's number."""
    return _matching(prefix, lambda api: [job["job_id"] for job in api.jobs.jobs(limit=100)])


def complete_run(prefix: str, **_: object) -> list[str]:
    """A run's id."""
    return _matching(prefix, lambda api: [run["id"] for run in api.runs(limit=200)])


def complete_sweep(prefix: str, **_: object) -> list[str]:
    """A sweep's id or name."""

    def names(api: Api) -> list[str]:
        return [sweep[key] for sweep in api.sweeps.sweeps(limit=100) for key in ("id", "name")]

    return _matching(prefix, names)


def complete_run_or_sweep(prefix: str, **_: object) -> list[str]:
    return [*complete_run(prefix), *complete_sweep(prefix)]


def complete_project(prefix: str, **_: object) -> list[str]:
    """A project's name."""
    return _matching(prefix, lambda api: [project["name"] for project in api.projects()])


def complete_cluster(prefix: str, **_: object) -> list[str]:
    """The name of a profile."""
    from runyard.clusters.load import profile_folders, profile_names

    return [name for name in profile_names(profile_folders()) if name.startswith(prefix)]


def _matching(prefix: str, names: Callable[[Api], list[str]]) -> list[str]:
    """Never starts anything, and never fails."""
    try:
        api = find_server(locate())
        known = names(api) if api else []
    except Exception:
        return []
    return [name for name in dict.fromkeys(known) if name.startswith(prefix)]


def complete_file(prefix: str, **_: object) -> list[str]:
    from argcomplete.completers import FilesCompleter

    files: list[str] = FilesCompleter()(prefix)
    return files


def complete_sweep_or_file(prefix: str, **_: object) -> list[str]:
    from argcomplete.completers import FilesCompleter

    return [*complete_sweep(prefix), *FilesCompleter(("yaml", "yml", "json"))(prefix)]
