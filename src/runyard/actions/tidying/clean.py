"""Remove copies of code that no job needs, and what dead jobs left on the disks of nodes."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import runyard
from runyard.actions.events import Notice, Notify, ignore
from runyard.client.api import Api
from runyard.client.sweeps import OPEN_STATES
from runyard.home import Home, locate

if TYPE_CHECKING:
    from runyard.launch.node_cleaning import Cleaned

# A copy that was wanted a moment ago may be on its way to Slurm.
_YOUNG_SECONDS = 600.0


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
    from runyard.config.flags import Flags, Given
    from runyard.config.project_file import read_project
    from runyard.launch import node_cleaning
    from runyard.launch.plan import Interpreter
    from runyard.schedulers.choice import cluster

    scheduler = cluster()
    scheduler.demand()
    options = {"partition": request.partition, "account": request.account}
    flags = {
        f"resources.{name}": Given(value, f"--{name} {value}")
        for name, value in options.items()
        if value is not None
    }
    project = read_project(request.folder, Flags(flags))
    up, away = scheduler.nodes_of(project.resources.partition)
    for node in away:
        notify(Notice(f"{node} is away: what is there is removed by the next job on it"))
    source = str(Path(runyard.__file__).resolve().parents[1])
    folder = locate().path / "jobs" / f"clean-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
    return node_cleaning.clean_nodes(
        project, Interpreter(sys.executable, source), up, folder, environ=os.environ,
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


def _needed(api: Api) -> set[str]:
    """The digests that jobs may still start with, or agents be added with."""
    from runyard.launch.watching import look

    known = [job for job in api.jobs.jobs() if job["snapshot"] is not None]
    looked = look(api.jobs, known).jobs
    sweeps = {sweep["key"] for sweep in api.sweeps.sweeps() if sweep["state"] in OPEN_STATES}
    return {
        str(job["snapshot"]) for job in looked if job["ended_at"] is None or job["sweep"] in sweeps
    }
