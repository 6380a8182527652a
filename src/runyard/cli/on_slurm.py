"""`--on slurm`: a sweep's agents as jobs of the cluster, for every command that makes a sweep."""

from __future__ import annotations

import argparse
import os
import secrets
import shlex
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import runyard
from runyard.actions.tracking import require_key
from runyard.cli.connect import server
from runyard.cli.output import say, show
from runyard.cli.questions import ask_number, ask_yes
from runyard.cli.staging_check import check_staging
from runyard.cli.submission_view import advise, describe, tell
from runyard.errors import NotFoundError, RunyardError, UsageError
from runyard.home import Home, locate, prepare

if TYPE_CHECKING:
    from runyard.cli.estimating import Subject
    from runyard.client.api import Api
    from runyard.client.jobs import NewJob
    from runyard.client.sweeps import Sweep
    from runyard.config.request import Request
    from runyard.launch.environments import Wrapping
    from runyard.launch.plan import Places, Plan
    from runyard.launch.snapshot import Snapshot
    from runyard.launch.submitting import Submitted

# A file that changes while the code is copied is being saved, and is whole in a moment.
_COPIES, _COPY_PAUSE = 5, 0.5
_PATIENCE_IN_A_JOB = 60.0
# Commands whose jobs are the tasks of an array.
_ARRAYS = ("sweep", "agents", "farm", "repeat", "retry")


@dataclass(frozen=True)
class Submission:
    """A plan that is ready to be sent, for a sweep that need not exist yet."""

    plan: Plan
    request: Request
    home: Home
    make: Callable[[int | None], Plan]
    """The plan for another number of agents."""
    settle: Callable[[bool], Wrapping]
    """What programs need around them; with True nothing is built or looked at."""
    again: Callable[[], Submission]
    """The same of the project as it is now."""
    copy: Snapshot | None = None
    """The code to be copied, unless it is there."""
    notes: tuple[str, ...] = ()
    """What the site changes in what was asked."""
    trials: int | None = None
    agents: int | None = None
    """How many the user wants, where they were asked."""
    subject: Subject | None = None
    """Of what kind they are, for an estimate; None: nobody wants one."""

    def preview(self) -> None:
        """Exactly what would be sent; makes nothing. Refuses what would be refused: where there is
        Slurm, by its own word."""
        from runyard.launch.environment_checks import demand
        from runyard.launch.script import arguments, script
        from runyard.launch.submitting import follows, key_of, parts_of, try_plan
        from runyard.schedulers.choice import cluster
        from runyard.schedulers.slurm.sending import command

        for note in (*self.notes, *self.plan.notes):
            say(note)
        self._say_estimate()
        scheduler = cluster()
        has_slurm = scheduler.is_here()
        if has_slurm:
            demand(self.plan.wrapping.checks, say)
        size = scheduler.array_size() if has_slurm and self.plan.form == "array" else None
        parts = parts_of(self.plan, size or self.plan.profile.limits.array_size)
        text, job = script(self.plan, parts[0]), self.plan.places.job
        words = command(text, key_of(job, parts[0]), arguments(job))
        say(f"this is sent to:  {shlex.join(words)}")
        if len(parts) > 1:
            after = ", each after the one before it" if follows(self.plan) else ""
            say(f"as {len(parts)} jobs{after}, of {parts[0].count} and fewer tasks; the first is:")
        sys.stdout.write(text)
        sys.stdout.flush()
        if has_slurm:
            say(f"Slurm says:  {try_plan(self.plan, parts[0], scheduler)}")
        say("nothing was made or submitted")

    def confirmed(self, args: argparse.Namespace) -> Submission | None:
        """Show what will be asked of Slurm. On a terminal ask how many agents, where nobody said,
        and whether to go on; None where not."""
        for note in (*self.notes, *self.plan.notes):
            say(note)
        for advice in advise(self):
            say(advice)
        found, asks = self, not args.yes and sys.stdin.isatty() and sys.stderr.isatty()
        usual = self.plan.agents if self.plan.chain is None else self.plan.chain.lanes
        if asks and self.request.agents.count is None and (usual > 1 or self.trials is None):
            found = self.with_agents(ask_number("how many agents?", usual))
        found._say_estimate()
        say(describe(found.plan))
        if asks and not ask_yes("submit this?"):
            return None
        return found.make_ready()

    def _say_estimate(self) -> None:
        if self.subject is not None:
            from runyard.cli.estimating import asked_of, say_estimate

            say_estimate(self.subject, asked_of(self, self.trials), self.request)

    def make_ready(self) -> Submission:
        """The environment is built or looked at, the server listens to the compute nodes, and the
        code is copied: of a project that changes meanwhile, as it is then."""
        from runyard.launch.serving import server_for_jobs

        self.settle(False)
        server_for_jobs(self.home, self.plan.profile, say)
        ready = self
        for _ in range(_COPIES):
            changed = ready._copy_code()
            if changed is None:
                return ready
            time.sleep(_COPY_PAUSE)
            ready = self.again()
            ready = ready if self.agents is None else ready.with_agents(self.agents)
        raise UsageError(
            f"{changed} keeps changing while the code is copied; nothing was submitted",
            mend="end what writes it, name it in .gitignore, or submit with --no-snapshot",
        )

    def with_agents(self, count: int) -> Submission:
        return replace(self, plan=self.make(count), agents=count)

    def send(self, api: Api, sweep: Sweep) -> Submitted:
        """Submit it for this sweep, and have the server remember the jobs."""
        from runyard.launch.held import hold
        from runyard.launch.script import script
        from runyard.launch.submitting import submit, with_sweep
        from runyard.schedulers.choice import cluster

        plan = with_sweep(self.plan, sweep["key"])
        scheduler = cluster()
        size = scheduler.array_size() if plan.form == "array" else None
        done = submit(plan, scheduler=scheduler, array_size=size, notice=say)
        record = {
            "cluster": scheduler.cluster_name() or "",
            "kind": "agents",
            "name": plan.name,
            "sweep": sweep["key"],
            "folder": str(plan.places.job),
            "log_pattern": plan.log_pattern,
            "asked": dict(plan.asked),
            "snapshot": (plan.job.get("snapshot") or {}).get("digest"),
            "script": script(plan),
            "environment": dict(plan.environment),
        }
        if done.left:
            hold(plan, done, sweep["key"], record)
        remember(api, record, done)
        if self.subject is not None:
            from runyard.cli.estimating import asked_of, keep_estimate

            gpu = self.request.resources.gpu_type
            keep_estimate(api, sweep, self.subject, asked_of(self, self.trials), gpu)
        return done

    def _copy_code(self) -> str | None:
        """The file that changed meanwhile, if one did."""
        from runyard.launch.snapshot import Changed, store

        try:
            if self.copy is not None:
                store(self.home.path, self.copy)
        except Changed as changed:
            return str(changed)
        return None


def remember(api: Api, record: Mapping[str, Any], done: Submitted) -> None:
    """Have the server remember the jobs of a submission."""
    for job in done.jobs:
        new: dict[str, Any] = {
            **record,
            "job_id": job.job_id,
            "array": job.array,
            # Of Slurm's: agents on the nodes of one job are one task to it.
            "tasks": 1 if job.array is None else job.tasks,
            "submitted_at": time.time(),
        }
        api.jobs.record(cast("NewJob", new))


def send_held_agents(api: Api, home: Home) -> int:
    """Send what Slurm's limits kept out before; how many agents it took now."""
    from runyard.launch.held import send_held
    from runyard.schedulers.choice import cluster

    def is_wanted(key: int) -> bool:
        try:
            return api.sweeps.sweep(key)["state"] in ("running", "paused")
        except NotFoundError:
            return False

    return send_held(
        home.path,
        cluster(),
        is_wanted,
        lambda record, done: remember(api, record, done),
        patience=_PATIENCE_IN_A_JOB if "SLURM_JOB_ID" in os.environ else 0.0,
    )


def plan_submission(
    args: argparse.Namespace,
    *,
    kind: str,
    folder: Path,
    trials: int | None,
    slots: int = 1,
    code: Mapping[str, Any] | None = None,
    subject: Callable[[Request], Subject] | None = None,
    command_line: str | None = None,
) -> Submission:
    """Everything that can be known before anything is made; refuses what the site would refuse.

    `code`: the record of a snapshot that these agents are to run, in place of today's code.
    `subject`: of what kind the trials are, where an estimate is wanted.
    `command_line`: the program, where there is only one and no array.
    """
    from runyard.actions.environments import builder
    from runyard.cli.resource_flags import given_flags
    from runyard.config.check import check
    from runyard.config.project_file import read_project, with_shell
    from runyard.config.trial_shape import fit_array, fit_single
    from runyard.launch.plan import Interpreter, Work, plan
    from runyard.launch.settling_environment import settle_environment
    from runyard.schedulers.slurm.commands import find_slurm
    from runyard.schedulers.slurm.maintenance import mind_maintenance

    if not args.dry_run:
        find_slurm()
    flags = given_flags(args)
    if kind != "agents" and flags["sweep_id"]:
        raise UsageError(
            f"{flags.given['sweep_id'].option} is a sweep that is there, whose agents run its own "
            "program",
            mend="leave it or the program out",
        )
    request = with_shell(read_project(folder, flags), os.environ)
    shape_notes: list[str] = []
    if command_line is not None:
        request, shape_notes = fit_single(request, command_line)
    elif kind in _ARRAYS:
        request, shape_notes = fit_array(request, slots)
    checked = check(request)
    request, warned = mind_maintenance(checked.accepted(), os.environ)
    require_key(request.tracking.server, request.tracking.key, show)
    home = locate()
    copy, places = _find_places(args, request, home, folder, code)
    check_staging(request, places)
    source = str(Path(runyard.__file__).resolve().parents[1])

    def settle(dry_run: bool) -> Wrapping:
        if not dry_run:
            prepare(home)  # It may be the first thing that comes into it.
        return settle_environment(
            request,
            work=places.work,
            builder=builder(),
            say=say if not dry_run or args.dry_run else lambda _text: None,
            mounts=tuple(dict.fromkeys((str(places.project), str(places.source)))),
            dry_run=dry_run,
        )

    wrapping = settle(True)

    def make(agents: int | None) -> Plan:
        asked = request
        if agents is not None:
            asked = replace(request, agents=replace(request.agents, count=agents))
        return plan(
            asked,
            request.profile,
            work=Work(None, slots=slots, trials=trials, kind=kind),
            places=places,
            runyard=Interpreter(sys.executable, source),
            wrapping=wrapping,
            snapshot=code if copy is None else copy.record,
        )

    def again() -> Submission:
        return plan_submission(
            args, kind=kind, folder=folder, trials=trials, slots=slots, code=code, subject=subject,
            command_line=command_line,
        )  # fmt: skip

    return Submission(
        plan=make(None),
        request=request,
        home=home,
        make=make,
        settle=settle,
        again=again,
        copy=copy,
        notes=(*request.warnings, *shape_notes, *checked.notes, *warned),
        trials=trials,
        subject=None if subject is None else subject(request),
    )


def _find_places(
    args: argparse.Namespace,
    request: Request,
    home: Home,
    folder: Path,
    code: Mapping[str, Any] | None,
) -> tuple[Snapshot | None, Places]:
    from runyard.launch.places import check_home, site_scratch
    from runyard.launch.plan import Places
    from runyard.launch.snapshot import MANIFEST, find_stored, folder_of, look

    scratch = site_scratch(request.profile, os.environ)
    check_home(request.profile, home.path, scratch, os.environ)
    token = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
    job, root, copy, tree = home.path / "jobs" / token, request.folder, None, None
    if code is not None:
        tree = find_stored(home.path, str(code.get("digest")))
    elif not args.no_snapshot:
        copy = look(root)
        tree = folder_of(home.path, copy)
    if tree is None:
        return None, Places(home.path, job, folder, root, root, scratch)
    packages = tree / "src" if copy is None or _has_packages(copy) else None
    return copy, Places(
        home=home.path,
        job=job,
        work=tree / folder.resolve().relative_to(root.resolve()),
        source=tree,
        project=root,
        scratch=scratch,
        manifest=tree.parent / MANIFEST,
        python_path=packages if copy is not None or (tree / "src").is_dir() else None,
    )


def _has_packages(copy: Snapshot) -> bool:
    return any(path.startswith("src/") and path.endswith("/__init__.py") for path in copy.files)


def send_or_undo(
    submission: Submission, sweep: Sweep, *, as_json: bool, is_new: bool = True
) -> int:
    """Submit; a sweep that was made for it and gets no job is deleted."""
    from runyard.schedulers.errors import SchedulerSilent

    api = server(quiet=True)
    try:
        done = submission.send(api, sweep)
    except (SchedulerSilent, KeyboardInterrupt):
        # Slurm may have taken the job: it then finds a sweep with nothing to do, and ends.
        if is_new:
            api.sweeps.set_state(sweep["key"], "canceled")
        fate = "is canceled" if is_new else "is as it was"
        say(f"it is not known whether Slurm took the job: sweep {sweep['id']} {fate}")
        raise
    except RunyardError:
        if is_new:
            api.sweeps.delete(sweep["key"])
            say(f"sweep {sweep['id']} is deleted")
        raise
    tell(submission.plan, done, sweep, as_json=as_json)
    return 0


def nothing_was_submitted() -> int:
    say("nothing was submitted")
    return 1
