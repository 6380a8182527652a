"""`--on slurm`: a sweep's agents as jobs of the cluster, for every command that makes a sweep."""

from __future__ import annotations

import argparse
import os
import secrets
import shlex
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import runyard
from runyard.cli.connect import server
from runyard.cli.output import print_json, say
from runyard.errors import RunyardError, UsageError
from runyard.home import Home, locate

if TYPE_CHECKING:
    from runyard.client.api import Api
    from runyard.client.sweeps import Sweep
    from runyard.config.request import Request
    from runyard.launch.plan import Plan
    from runyard.launch.submitting import Submitted

HERE, SLURM = "here", "slurm"
_LONG_SECONDS = 6 * 3600.0


def add_slurm_arguments(parser: argparse.ArgumentParser, *, default: str = HERE) -> None:
    """What every command has that can work on the cluster. Call it after the command's own."""
    from runyard.config.flags import add_resource_flags

    parser.add_argument("--on", choices=(HERE, SLURM), default=default,
                        help=f"where it runs (default {default})")  # fmt: skip
    parser.add_argument("-y", "--yes", action="store_true", help="ask nothing before submitting")
    parser.add_argument("--no-snapshot", action="store_true",
                        help="run the project's files as they are when a job starts, not as they "
                        "are now")  # fmt: skip
    add_resource_flags(parser, title="on slurm")


@dataclass(frozen=True)
class Submission:
    """A plan that is ready to be sent, for a sweep that need not exist yet."""

    plan: Plan
    request: Request
    home: Home
    make: Callable[[int | None], Plan]
    """The plan for another number of agents."""

    def preview(self) -> None:
        """Exactly what would be sent; makes nothing."""
        from runyard.launch.script import arguments, script
        from runyard.launch.submitting import parts_of

        for note in (*self.request.warnings, *self.plan.notes):
            say(note)
        parts = parts_of(self.plan, self.plan.profile.limits.array_size)
        say(f"this is sent to:  {shlex.join(['sbatch', '--parsable', *arguments(self.plan)])}")
        if len(parts) > 1:
            say(f"as {len(parts)} jobs, of {parts[0].count} and fewer tasks; the first is:")
        sys.stdout.write(script(self.plan, parts[0]))
        say("nothing was made or submitted")

    def confirmed(self, args: argparse.Namespace) -> Submission | None:
        """Show what will be asked of Slurm. On a terminal ask how many agents, where nobody said,
        and whether to go on; None where not."""
        for note in (*self.request.warnings, *self.plan.notes):
            say(note)
        for advice in advise(self):
            say(advice)
        found, asks = self, not args.yes and sys.stdin.isatty() and sys.stderr.isatty()
        if asks and self.request.agents.count is None and self.plan.agents > 1:
            found = self.with_agents(_ask_number("how many agents?", self.plan.agents))
        say(describe(found.plan))
        return found if not asks or _ask_yes("submit this?") else None

    def with_agents(self, count: int) -> Submission:
        return replace(self, plan=self.make(count))

    def send(self, api: Api, sweep: Sweep) -> Submitted:
        """Submit it for this sweep, and have the server remember the jobs."""
        from runyard.launch.submitting import submit, with_sweep

        plan = with_sweep(self.plan, sweep["key"])
        done = submit(plan, environ=os.environ, notice=say)
        for job in done.jobs:
            api.jobs.record(
                {
                    "cluster": plan.profile.name,
                    "job_id": job.job_id,
                    "kind": "agents",
                    "name": plan.name,
                    "submitted_at": time.time(),
                    "sweep": sweep["key"],
                    "array": job.array,
                    "tasks": job.tasks,
                    "folder": str(plan.places.job),
                    "log_pattern": plan.log_pattern,
                    "asked": dict(plan.asked),
                    "snapshot": None,
                }
            )
        return done


def plan_submission(
    args: argparse.Namespace,
    *,
    kind: str,
    folder: Path,
    trials: int | None,
    slots: int = 1,
    name: str | None = None,
) -> Submission:
    """Everything that can be known before anything is made; refuses what the site would refuse."""
    from runyard.config.flags import given_flags
    from runyard.config.project_file import read_project
    from runyard.launch.commands import find_slurm
    from runyard.launch.plan import Interpreter, Places, Work, plan

    if not getattr(args, "dry_run", False):
        find_slurm()
    request = read_project(folder, given_flags(args))
    home = locate()
    token = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
    places = Places(
        home=home.path,
        job=home.path / "jobs" / token,
        work=folder,
        source=request.folder,
        project=request.folder,
        scratch=None,
    )

    def make(agents: int | None) -> Plan:
        asked = request
        if agents is not None:
            asked = replace(request, agents=replace(request.agents, count=agents))
        return plan(
            asked,
            request.profile,
            work=Work(None, slots=slots, trials=trials, kind=kind),
            places=places,
            runyard=Interpreter(sys.executable, str(Path(runyard.__file__).resolve().parents[1])),
        )

    return Submission(make(None), request, home, make)


def advise(submission: Submission) -> list[str]:
    """What an old hand would say, looking over the shoulder."""
    plan, found = submission.plan, []
    if plan.form == "array" and plan.agents > 1 and plan.asked.get("time", 0) > _LONG_SECONDS:
        found.append(
            "short jobs start sooner: trials go on from their checkpoints in the next job, so "
            "--time can be less than the whole sweep needs"
        )
    if submission.request.staging.data:
        found.append(
            "what is read often and in small pieces is quick in ${SLURM_TMPDIR}; checkpoints and "
            "large files belong in ${scratch_dir}"
        )
    return found


def _ask_number(question: str, usual: int) -> int:
    while True:
        print(f"{question} [{usual}] ", end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        text = line.strip()
        if not text:
            return usual
        if text.isdecimal() and int(text) > 0:
            return int(text)
        say(f"{text!r} is no whole number, 1 or more")


def _ask_yes(question: str) -> bool:
    print(f"{question} [Y/n] ", end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    return bool(line) and line.strip().lower() in ("", "y", "yes")


def describe(plan: Plan) -> str:
    """The submission in a line."""
    what = {"array": "an array of", "nodes": "one job over", "jobs": "jobs:"}[plan.form]
    unit = {"array": "tasks", "nodes": "nodes", "jobs": "jobs"}[plan.form]
    at_once = f", {plan.at_once} at once" if plan.at_once else ""
    options = " ".join(plan.header.lines()[1:])
    return f"to {plan.profile.name}: {what} {plan.agents} {unit}{at_once}; {options}"


def tell(plan: Plan, done: Submitted, sweep: Sweep, *, as_json: bool) -> None:
    """What was submitted, how to watch it, where its logs are."""
    ids = [job.job_id for job in done.jobs]
    if as_json:
        print_json(
            {
                "sweep": sweep["id"],
                "jobs": [asdict(job) for job in done.jobs],
                "held": done.held,
                "folder": str(plan.places.job),
                "logs": plan.log_pattern,
            }
        )
    else:
        print("\n".join(ids))
    tasks = sum(job.tasks for job in done.jobs)
    say(f"job {', '.join(ids)}: {tasks} agents for sweep {sweep['id']}")
    if done.held:
        say(
            f"{done.held} more agents are held back ({done.why_held}); they are sent when there is "
            "room, and until then the others do their work"
        )
    say(f"watch it:  runyard status {sweep['id']} --watch")
    say(f"its logs:  runyard logs -f {sweep['id']}   or in {plan.logs}")
    say(f"end it:    runyard cancel {sweep['id']}")


def send_or_undo(
    submission: Submission, sweep: Sweep, *, as_json: bool, is_new: bool = True
) -> int:
    """Submit; a sweep that was made for it and gets no job is canceled."""
    api = server(quiet=True)
    try:
        done = submission.send(api, sweep)
    except RunyardError:
        if is_new:
            api.sweeps.set_state(sweep["key"], "canceled")
        raise
    tell(submission.plan, done, sweep, as_json=as_json)
    return 0


def not_here(args: argparse.Namespace, *names: str) -> None:
    """Refuse options that mean something on this machine alone."""
    for name in names:
        if getattr(args, name.replace("-", "_"), None):
            raise UsageError(
                f"--{name} is for this machine, and has no meaning with --on slurm",
                mend="leave one of the two out",
            )


def nothing_was_submitted() -> int:
    say("nothing was submitted")
    return 1

