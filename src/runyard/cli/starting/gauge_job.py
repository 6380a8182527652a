"""`runyard gauge --on slurm`: the same measurement in a short job, on the hardware that counts."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from runyard.actions.submitting.allocation import allocate_for, enter_job, give_back
from runyard.actions.submitting.planning import SubmissionRequest, plan_submission
from runyard.actions.submitting.submission import ClusterOptions, Submission
from runyard.cli.connect import server
from runyard.cli.output import say, show
from runyard.errors import ProgramError

if TYPE_CHECKING:
    from runyard.gauge.conclusions import Raw

_RESULT = "gauge.json"
# Besides the measurement itself: programs start, MPS starts, the report is written.
_BESIDES = 300.0
_MOST_LEVELS = 6
_START = "import sys; sys.path.insert(0, {0}); from runyard.cli.main import main; sys.exit(main())"


def measure_in_job(args: argparse.Namespace) -> Raw | None:
    """Allocate, measure there, bring it home, give the node back; None: it was only shown."""
    from runyard.gauge.conclusions import raw_from_json
    from runyard.launch.script import shell_script
    from runyard.schedulers.slurm.allocations import allocation_words

    submission = _plan(args)
    script = shell_script(submission.plan, wraps=False)
    result = submission.plan.places.job / _RESULT
    command = _command(args, submission, result)
    if args.dry_run:
        print(shlex.join(allocation_words(submission.plan.header)))
        print(shlex.join(command))
        say("nothing was made or asked for")
        return None
    for note in (*submission.notes, *submission.plan.notes):
        say(note)
    say(shlex.join(allocation_words(submission.plan.header)))
    submission.settle(False)
    api = server()
    job = allocate_for(api, submission, script, kind="gauge")
    try:
        code = enter_job(job, submission.plan.profile.script.shell, command)
    except KeyboardInterrupt:
        say(f"Ctrl-C: job {job['job_id']} is given back, and what it measured is lost")
        raise
    finally:
        give_back(api, job)
    try:
        told = json.loads(result.read_text())
    except (OSError, ValueError) as error:
        raise ProgramError(
            f"the job {job['job_id']} ended with code {code} before it had measured anything",
            exit_code=1,
            mend="what it said stands above; a longer --time or more --memory may help",
        ) from error
    found = raw_from_json(told)
    # Not every Slurm tells a step what its job has.
    asked = submission.plan.asked.get("memory")
    return replace(found, job_memory=asked) if asked else found


def _plan(args: argparse.Namespace) -> Submission:
    """A job that is as long as the measurement, whatever runyard.yaml says of the real ones."""
    from runyard.cli.resource_flags import given_flags
    from runyard.config.flags import Flags, Given, flag
    from runyard.config.project_file import read_project

    flags = given_flags(args)
    if flags["resources.time"] is None:
        request = read_project(Path.cwd(), flags)
        limit = request.profile.limit(request.resources.partition, request.resources.qos)
        each = args.span or request.gauge.time
        seconds = each * (_MOST_LEVELS if args.pack else 1) + _BESIDES
        longest = limit.longest or seconds
        if args.whole:
            seconds = longest if limit.longest else request.resources.time or seconds
        seconds = max(limit.shortest or 0.0, min(seconds, longest))
        time = flag("resources.time", [Given(seconds, f"{seconds:.0f}s")])
        flags = Flags({**flags.given, "resources.time": time})
    per_gpu = args.per_gpu if isinstance(args.per_gpu, int) else 1
    slots = args.slots or 1
    wanted = SubmissionRequest(
        "gauge",
        Path.cwd(),
        max(slots, per_gpu),
        flags,
        slots,
        ClusterOptions(args.dry_run, copies_code=False),
    )
    return plan_submission(wanted, show)


def _command(args: argparse.Namespace, submission: Submission, result: Path) -> list[str]:
    """What runs there: this command again, by runyard's own Python."""
    plan = submission.plan
    start = _START.format(json.dumps(plan.runyard.source, ensure_ascii=False))
    words = [plan.runyard.python or sys.executable, "-c", start, "gauge", "--raw", str(result)]
    launcher = plan.job.get("launcher")
    if launcher:
        words += ["--started-by", shlex.join(launcher)]
    given = {
        "--for": args.span, "--steps": args.steps, "--pack": args.pack, "--tasks": args.tasks,
        "-j": args.slots, "--per-gpu": args.per_gpu, "--mps": args.mps,
    }  # fmt: skip
    for option, value in given.items():
        if value is not None:
            words += [option, str(value)]
    if args.whole:
        words.append("--whole")
    return [*words, *([] if args.tasks else args.command_line)]
