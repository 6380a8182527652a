"""Work in an interactive job: allocated, recorded, entered, and given back."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from runyard.home import write_whole
from runyard.schedulers.errors import SchedulerError

if TYPE_CHECKING:
    from runyard.actions.submitting.submission import Submission
    from runyard.client.api import Api
    from runyard.shapes.jobs import Job

SCRIPT = "script.sh"


def allocate_for(api: Api, submission: Submission, script: str, *, kind: str) -> Job:
    """Wait for the allocation, with the script in its folder; the job as the server knows it."""
    from runyard.schedulers.choice import cluster

    plan = submission.plan
    folder = plan.places.job
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_whole(folder / SCRIPT, script)
    write_whole(folder / "job.json", json.dumps(plan.job, indent=1) + "\n")
    scheduler = cluster()
    number = scheduler.allocate(plan.header)
    return api.jobs.record(
        {
            "cluster": scheduler.cluster_name() or "",
            "job_id": number,
            "kind": kind,
            "name": plan.name,
            "submitted_at": time.time(),
            "folder": str(folder),
            "asked": dict(plan.asked),
            "script": script,
            "environment": dict(plan.environment),
        }
    )


def enter_job(job: Job, shell: str, command: Sequence[str]) -> int:
    """Run a command in it by its script, on this terminal; its exit code."""
    from runyard.schedulers.choice import cluster

    words = inside(shell, Path(job["folder"]) / SCRIPT, command)
    cpus = job["asked"].get("cpus")
    is_terminal = sys.stdin.isatty()
    return enter(cluster().entry_words(job["job_id"], words, cpus, on_terminal=is_terminal))


def enter(words: Sequence[str]) -> int:
    """Run it on this terminal; its exit code."""
    try:
        return subprocess.run(list(words), check=False).returncode
    except OSError as error:
        raise SchedulerError(f"{words[0]} cannot be run", said=error.strerror) from error


def inside(shell: str, script: Path, command: Sequence[str]) -> list[str]:
    """The script, which starts what it is given, or a shell."""
    return [shell, str(script), *command]


def give_back(api: Api, job: Job) -> None:
    from runyard.launch.watching import look
    from runyard.schedulers.choice import cluster

    cluster().cancel([job["job_id"]])
    look(api.jobs, [job])
