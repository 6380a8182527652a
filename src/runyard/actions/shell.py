"""A shell on a compute node, in a job of its own or inside one that runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from runyard.actions.events import Notice, Notify
from runyard.actions.naming import find
from runyard.actions.submitting.allocation import (
    SCRIPT,
    allocate_for,
    enter_job,
    give_back,
    inside,
)
from runyard.actions.submitting.planning import SubmissionRequest, plan_submission
from runyard.actions.submitting.submission import ClusterOptions
from runyard.config.flags import Flags
from runyard.errors import UsageError
from runyard.schedulers.choice import cluster

if TYPE_CHECKING:
    from runyard.actions.submitting.submission import Submission
    from runyard.client.api import Api


def plan_shell(flags: Flags, folder: Path, notify: Notify, *, dry_run: bool) -> Submission:
    """What an interactive job would be."""
    options = ClusterOptions(dry_run, copies_code=False)
    wanted = SubmissionRequest("shell", folder, 1, flags, cluster=options)
    return plan_submission(wanted, notify)


@dataclass(frozen=True)
class ShellShown:
    """What would be asked of the scheduler, and run there."""

    allocation: Sequence[str]
    entry: Sequence[str]
    script: str


def preview_shell(submission: Submission, command: Sequence[str]) -> ShellShown:
    from runyard.launch.script import shell_script

    plan, scheduler = submission.plan, cluster()
    there = inside(plan.profile.script.shell, plan.places.job / SCRIPT, command)
    entry = scheduler.entry_words("JOB", there, plan.asked.get("cpus"))
    return ShellShown(scheduler.allocation_words(plan.header), entry, shell_script(plan))


def work_in_shell(
    api: Api, submission: Submission, command: Sequence[str], notify: Notify, *, keep: bool
) -> int:
    """Wait for the nodes, and run a shell or the command there, on this terminal; its exit code.
    The nodes are given back at its end, unless they are to be kept."""
    from runyard.launch.script import shell_script

    plan = submission.plan
    job = allocate_for(api, submission, shell_script(plan), kind="shell")
    number = job["job_id"]
    if not (os.environ.get("TMUX") or os.environ.get("STY")):
        notify(Notice(f"if the connection drops, `runyard shell {number}` goes in again"))
    code = enter_job(job, plan.profile.script.shell, command)
    if keep:
        again = f"`runyard shell {number}`, and `runyard cancel {number}`"
        notify(Notice(f"job {number} is kept: {again}"))
    else:
        give_back(api, job)
    return code


def entry_of(api: Api, words: str, command: Sequence[str]) -> list[str]:
    """What is typed to go into a job that runs, with the command or a shell."""
    from runyard.launch.watching import look

    named = find(api, words)
    if named.sweep is not None or named.run is not None:
        raise UsageError(
            f"{words!r} is no job", mend="`runyard status` shows which job a trial is in"
        )
    number, cpus = named.number or "", None
    there = list(command) or [os.environ.get("SHELL") or "/bin/sh", "-i"]
    if named.job is not None:
        [job] = look(api.jobs, [named.job]).jobs
        if job["ended_at"] is not None:
            raise UsageError(f"job {job['job_id']} has ended", mend="`runyard shell` starts one")
        number, cpus = job["job_id"], job["asked"].get("cpus")
        if job["array"] is not None and named.task is None:
            raise UsageError(
                f"job {number} has {job['tasks']} tasks", mend=f"name one: runyard shell {number}_1"
            )
        script = Path(job["folder"]) / SCRIPT
        if job["kind"] == "shell" and script.is_file():
            there = inside("bash", script, command)
    scheduler = cluster()
    number = scheduler.entry_number(number, named.task)
    return list(scheduler.entry_words(number, there, cpus, on_terminal=sys.stdin.isatty()))
