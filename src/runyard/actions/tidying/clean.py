"""Remove what no job needs: copies of code, folders of old jobs and calls, leftovers on nodes."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from runyard.actions.events import Notice, Notify, ignore
from runyard.client.api import Api
from runyard.client.server_jobs import read_server_jobs
from runyard.client.sweeps import OPEN_STATES
from runyard.home import SOURCE, Home, locate
from runyard.shapes.jobs import Job
from runyard.shapes.sweeps import Sweep

if TYPE_CHECKING:
    from runyard.launch.node_cleaning import Cleaned

# A copy that was wanted a moment ago may be on its way to Slurm.
_YOUNG_SECONDS = 600.0
_DAY = 86_400.0


@dataclass(frozen=True)
class CleanNodesRequest:
    """`folder`: the project's; `wait`: seconds for nodes that are busy."""

    folder: Path
    partition: str | None = None
    account: str | None = None
    wait: float = 600.0
    dry_run: bool = False


def clean_nodes(request: CleanNodesRequest, notify: Notify = ignore) -> list[Cleaned]:
    """A short job on each node of the partition; folders of jobs that still run stay."""
    from runyard.config.flags import Flags, FlagValue
    from runyard.config.project_file import read_project
    from runyard.launch import node_cleaning
    from runyard.launch.plan import Interpreter
    from runyard.schedulers.choice import cluster

    scheduler = cluster()
    scheduler.demand()
    options = {"partition": request.partition, "account": request.account}
    flags = {
        f"resources.{name}": FlagValue(value, f"--{name} {value}")
        for name, value in options.items()
        if value is not None
    }
    project = read_project(request.folder, Flags(flags))
    up, away = scheduler.nodes_of(project.resources.partition)
    for node in away:
        notify(Notice(f"{node} is away: what is there is removed by the next job on it"))
    folder = locate().path / "jobs" / f"clean-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
    return node_cleaning.clean_nodes(
        project, Interpreter(sys.executable, SOURCE), up, folder, environ=os.environ,
        dry_run=request.dry_run, seconds=request.wait,
    )  # fmt: skip


def clean_snapshots(api: Api, home: Home, *, dry_run: bool = False) -> list[str]:
    """The digests of the copies that went."""
    from runyard.launch.snapshot import MANIFEST, clean, snapshots_of
    from runyard.node.data.bring_back import bring_back

    needed = _needed(api)
    before = time.time() - _YOUNG_SECONDS

    def let_go(copy: Path) -> bool:
        if not dry_run:
            bring_back(str(copy / MANIFEST))
        return not dry_run

    return clean(snapshots_of(home.path), needed, older_than=before, let_go=let_go)


def clean_jobs(api: Api, home: Home, *, days: float, dry_run: bool = False) -> list[str]:
    """Scripts and logs of jobs, and calls of functions, that are over for so many days.

    The names of the folders that went. Of a sweep that is open, all of them stay.
    """
    before = time.time() - days * _DAY
    jobs, sweeps = _jobs_and_open_sweeps(api)
    keys = {sweep["key"] for sweep in sweeps}
    needed = {
        Path(job["folder"]).name
        for job in jobs
        if job["ended_at"] is None or job["ended_at"] > before or job["sweep"] in keys
    }
    if (own := read_server_jobs(home)) is not None:
        needed.add(Path(own.folder).name)
    # Calls stand in the command lines of their list; agents that are held back name their folder.
    mentions = json.dumps([sweep["config"] for sweep in sweeps])
    mentions += "".join(file.read_text() for file in (home.path / "held").glob("*.json"))
    removed = []
    for folder in sorted((*home.path.glob("jobs/*"), *home.path.glob("calls/*"))):
        if folder.is_symlink() or folder.name in needed or folder.name in mentions:
            continue
        if _last_change(folder) < before:
            removed.append(str(folder.relative_to(home.path)))
            if not dry_run:
                shutil.rmtree(folder, ignore_errors=True)
    return removed


def _last_change(folder: Path) -> float:
    """Of a folder or of a file in it; what goes away meanwhile is left alone."""
    try:
        return max(path.lstat().st_mtime for path in (folder, *folder.iterdir()))
    except OSError:
        return time.time()


def _needed(api: Api) -> set[str]:
    """The digests that jobs may still start with, or agents be added with."""
    jobs, sweeps = _jobs_and_open_sweeps(api)
    keys = {sweep["key"] for sweep in sweeps}
    return {
        job["snapshot"]
        for job in jobs
        if job["snapshot"] is not None and (job["ended_at"] is None or job["sweep"] in keys)
    }


def _jobs_and_open_sweeps(api: Api) -> tuple[list[Job], list[Sweep]]:
    """All jobs as they are now, and the sweeps to which agents may be added."""
    from runyard.launch.watching import look

    sweeps = [sweep for sweep in api.sweeps.sweeps() if sweep["state"] in OPEN_STATES]
    return look(api.jobs, api.jobs.jobs()).jobs, sweeps
