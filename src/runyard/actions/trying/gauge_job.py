"""`runyard gauge --on slurm`: the same measurement in a short job, on the hardware that counts."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from runyard.actions.connect import open_server
from runyard.actions.events import Notice, Notify
from runyard.actions.submitting.allocation import allocate_for, enter_job, give_back
from runyard.actions.submitting.planning import SubmissionRequest, plan_submission
from runyard.actions.submitting.submission import ClusterOptions, Submission
from runyard.actions.trying.gauge import GaugeRequest
from runyard.errors import ProgramError

if TYPE_CHECKING:
    from runyard.gauge.conclusions import Raw

_RESULT = "gauge.json"
# Besides the measurement itself: programs start, MPS starts, the report is written.
_BESIDES = 300.0
_MOST_LEVELS = 6
_START = "import sys; sys.path.insert(0, {0}); from runyard.cli.main import main; sys.exit(main())"


@dataclass(frozen=True)
class JobPreview:
    """What would be asked for, and what would run there."""

    allocation: list[str]
    command: list[str]


def measure_in_job(
    request: GaugeRequest, notify: Notify, *, dry_run: bool = False
) -> Raw | JobPreview:
    """Allocate, measure there, bring it home, give the node back."""
    from runyard.gauge.conclusions import raw_from_json
    from runyard.launch.script import shell_script
    from runyard.schedulers.choice import cluster

    submission = _plan(request, notify, dry_run=dry_run)
    script = shell_script(submission.plan, wraps=False)
    result = submission.plan.places.job / _RESULT
    command = _command(request, submission, result)
    allocation = cluster().allocation_words(submission.plan.header)
    if dry_run:
        return JobPreview(allocation, command)
    for note in (*submission.notes, *submission.plan.notes):
        notify(Notice(note))
    notify(Notice(shlex.join(allocation)))
    submission.settle(False)
    api = open_server(notify)
    job = allocate_for(api, submission, script, kind="gauge")
    try:
        code = enter_job(job, submission.plan.profile.script.shell, command)
    except KeyboardInterrupt:
        lost = f"job {job['job_id']} is given back, and what it measured is lost"
        notify(Notice(f"Ctrl-C: {lost}"))
        raise
    finally:
        give_back(api, job)
    try:
        figures = json.loads(result.read_text())
    except (OSError, ValueError) as error:
        raise ProgramError(
            f"the job {job['job_id']} ended with code {code} before it had measured anything",
            exit_code=1,
            mend="what it said stands above; a longer --time or more --memory may help",
        ) from error
    raw = raw_from_json(figures)
    # Not every Slurm tells a step what its job has.
    memory = submission.plan.asked.get("memory")
    return replace(raw, job_memory=memory) if memory else raw


def _plan(request: GaugeRequest, notify: Notify, *, dry_run: bool) -> Submission:
    """A job that is as long as the measurement, whatever runyard.yaml says of the real ones."""
    from runyard.config.flags import Flags, FlagValue, flag
    from runyard.config.project_file import read_project

    flags = request.options.flags
    if flags["resources.time"] is None:
        project = read_project(Path.cwd(), flags)
        limit = project.profile.limit(project.resources.partition, project.resources.qos)
        each = request.seconds or project.gauge.time
        seconds = each * (_MOST_LEVELS if request.pack else 1) + _BESIDES
        longest = limit.longest or seconds
        if request.whole:
            seconds = longest if limit.longest else project.resources.time or seconds
        seconds = max(limit.shortest or 0.0, min(seconds, longest))
        time = flag("resources.time", [FlagValue(seconds, f"{seconds:.0f}s")])
        flags = Flags({**flags.given, "resources.time": time})
    per_gpu = request.slots.per_gpu if isinstance(request.slots.per_gpu, int) else 1
    slots = request.slots.count or 1
    wanted = SubmissionRequest(
        "gauge",
        Path.cwd(),
        max(slots, per_gpu),
        flags,
        slots,
        ClusterOptions(dry_run, copies_code=False),
    )
    return plan_submission(wanted, notify)


def _command(request: GaugeRequest, submission: Submission, result: Path) -> list[str]:
    """What runs there: this command again, by runyard's own Python."""
    plan = submission.plan
    start = _START.format(json.dumps(plan.runyard.source, ensure_ascii=False))
    words = [plan.runyard.python or sys.executable, "-c", start, "gauge", "--raw", str(result)]
    launcher = plan.job.get("launcher")
    if launcher:
        words += ["--started-by", shlex.join(launcher)]
    options = {
        "--for": request.seconds, "--steps": request.steps, "--pack": request.pack,
        "--tasks": request.tasks,
        "-j": request.slots.count, "--per-gpu": request.slots.per_gpu, "--mps": request.slots.mps,
    }  # fmt: skip
    for option, value in options.items():
        if value is not None:
            words += [option, str(value)]
    if request.whole:
        words.append("--whole")
    return [*words, *([] if request.tasks else ["--", *request.command])]
