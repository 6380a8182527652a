"""A sweep's agents as jobs of the cluster: shown, agreed to, made ready and sent."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, cast

from runyard.actions.connect import open_server
from runyard.actions.events import Event, Notice, Notify, in_words
from runyard.actions.submitting.description import advise, describe
from runyard.errors import NotFoundError, RunyardError, UsageError
from runyard.home import Home
from runyard.schedulers.inside import this_job

if TYPE_CHECKING:
    from runyard.actions.estimates import Subject
    from runyard.client.api import Api
    from runyard.config.request import Request
    from runyard.gauge.estimates import SubmissionSize
    from runyard.launch.environments import Wrapping
    from runyard.launch.plan import Plan
    from runyard.launch.snapshot import Snapshot
    from runyard.launch.submitting import Submitted
    from runyard.shapes.jobs import NewJob
    from runyard.shapes.sweeps import Sweep

# A file that changes while the code is copied is being saved, and is whole in a moment.
_COPIES, _COPY_PAUSE = 5, 0.5
_PATIENCE_IN_A_JOB = 60.0


class Approval(Protocol):
    """Somebody who is asked before anything is submitted."""

    def agents(self, usual: int) -> int:
        """How many agents, where the request leaves it open."""

    def submit(self) -> bool:
        """Whether to go on, once it is told what will be asked for."""


@dataclass(frozen=True)
class ClusterOptions:
    """How a request goes to the cluster."""

    dry_run: bool = False
    """Show exactly what would be sent; make nothing."""
    copies_code: bool = True
    """Jobs run a copy of the code as it is now."""
    approval: Approval | None = None
    """Who is asked before it is sent; None: nobody."""


@dataclass(frozen=True)
class ScriptShown(Event):
    """What would be sent, to the letter; of several jobs the first."""

    command: Sequence[str]
    script: str
    jobs: int
    tasks: int
    """Of the first job."""
    one_after_another: bool


@dataclass(frozen=True)
class SweepSubmitted:
    """The jobs that a sweep got."""

    sweep: Sweep
    plan: Plan
    submitted: Submitted


@dataclass(frozen=True)
class Previewed:
    """Nothing was sent; `answer` is what the scheduler says to it, where there is one."""

    answer: str | None


@dataclass(frozen=True)
class Declined:
    """Somebody was asked, and said no."""


Outcome = SweepSubmitted | Previewed | Declined


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

    def preview(self, notify: Notify) -> str | None:
        """Exactly what would be sent, as an event; makes nothing. Refuses what would be refused:
        where there is a scheduler, by its own word, which is what comes back."""
        from runyard.launch.environment_checks import demand
        from runyard.launch.submitting import batch_of, follows, parts_of, try_plan
        from runyard.schedulers.choice import cluster

        for note in (*self.notes, *self.plan.notes):
            notify(Notice(note))
        self._estimate(notify)
        scheduler = cluster()
        is_here = scheduler.is_here()
        if is_here:
            demand(self.plan.wrapping.checks, in_words(notify))
        size = scheduler.array_size() if is_here and self.plan.form == "array" else None
        parts = parts_of(self.plan, size or self.plan.profile.limits.array_size)
        batch = batch_of(self.plan, parts[0])
        words, is_chain = scheduler.command(batch), bool(follows(self.plan))
        notify(ScriptShown(words, batch.text, len(parts), parts[0].count, is_chain))
        return try_plan(self.plan, parts[0], scheduler) if is_here else None

    def agreed(self, approval: Approval | None, notify: Notify) -> Submission | None:
        """Tell what will be asked for, and let the caller agree; None where not. Without
        `approval` nobody is asked."""
        for note in (*self.notes, *self.plan.notes):
            notify(Notice(note))
        for advice in advise(self.plan, self.request, self.trials, self.copy):
            notify(Notice(advice))
        agreed = self
        usual = self.plan.agents if self.plan.chain is None else self.plan.chain.lanes
        is_open = self.request.agents.count is None and (usual > 1 or self.trials is None)
        if approval is not None and is_open:
            agreed = self.with_agents(approval.agents(usual))
        agreed._estimate(notify)
        notify(Notice(describe(agreed.plan)))
        if approval is not None and not approval.submit():
            return None
        return agreed.make_ready(notify)

    def _estimate(self, notify: Notify) -> None:
        if self.subject is not None:
            from runyard.actions.estimates import tell_estimate

            tell_estimate(self.subject, self._asked(), self.request, notify)

    def _asked(self) -> SubmissionSize:
        """What it asks for, in the words of an estimate."""
        from runyard.gauge.estimates import SubmissionSize

        plan, request = self.plan, self.request
        limit = plan.profile.limit(request.resources.partition, request.resources.qos)
        gpus = int(plan.asked.get("gpus") or 0)
        per_gpu = plan.job.get("per_gpu")
        slots = plan.job.get("slots") or 1
        if isinstance(per_gpu, int):
            slots = max(slots, per_gpu * max(1, gpus))
        nodes = request.resources.nodes or 1 if plan.form != "nodes" else 1
        # The links of a chain follow one another: side by side are its lanes.
        agents = plan.agents if plan.chain is None else plan.chain.lanes
        return SubmissionSize(
            trials=self.trials,
            agents=agents,
            slots=slots,
            cpus=int(plan.asked.get("cpus") or 1) * nodes,
            gpus=gpus * nodes,
            at_once=plan.at_once if plan.chain is None else None,
            time=plan.asked.get("time"),
            memory=plan.asked.get("memory"),
            chain=request.agents.chain,
            trials_each=request.agents.trials_each,
            longest=limit.longest,
            chaining=limit.chaining,
        )

    def make_ready(self, notify: Notify) -> Submission:
        """The environment is built or looked at, the server listens to the compute nodes, and the
        code is copied: of a project that changes meanwhile, as it is then."""
        from runyard.launch.serving import server_for_jobs

        self.settle(False)
        server_for_jobs(self.home, self.plan.profile, in_words(notify))
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

    def send(self, api: Api, sweep: Sweep, notify: Notify) -> Submitted:
        """Submit it for this sweep, and have the server remember the jobs."""
        from runyard.launch.held import hold
        from runyard.launch.script import script
        from runyard.launch.submitting import submit, with_sweep
        from runyard.schedulers.choice import cluster

        plan = with_sweep(self.plan, sweep["key"])
        scheduler = cluster()
        size = scheduler.array_size() if plan.form == "array" else None
        done = submit(plan, scheduler=scheduler, array_size=size, notice=in_words(notify))
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
            from runyard.actions.estimates import keep_estimate

            gpu = self.request.resources.gpu_type
            keep_estimate(api, sweep, self.subject, self._asked(), gpu, notify)
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
        patience=_PATIENCE_IN_A_JOB if this_job().is_job else 0.0,
    )


def submit_for(
    submission: Submission,
    make_sweep: Callable[[], Sweep],
    cluster: ClusterOptions,
    notify: Notify,
    *,
    is_new: bool = True,
) -> Outcome:
    """Show it, or ask and send it; the sweep is made when all else is sure."""
    if cluster.dry_run:
        return Previewed(submission.preview(notify))
    agreed = submission.agreed(cluster.approval, notify)
    if agreed is None:
        return Declined()
    return submit_or_undo(agreed, make_sweep(), notify, is_new=is_new)


def submit_or_undo(
    submission: Submission, sweep: Sweep, notify: Notify, *, is_new: bool
) -> SweepSubmitted:
    """Submit; a sweep that was made for it and gets no job is deleted."""
    from runyard.schedulers.errors import SchedulerSilent

    api = open_server(notify, quiet=True)
    try:
        done = submission.send(api, sweep, notify)
    except (SchedulerSilent, KeyboardInterrupt):
        # Slurm may have taken the job: it then finds a sweep with nothing to do, and ends.
        if is_new:
            api.sweeps.set_state(sweep["key"], "canceled")
        fate = "is canceled" if is_new else "is as it was"
        notify(Notice(f"it is not known whether Slurm took the job: sweep {sweep['id']} {fate}"))
        raise
    except RunyardError:
        if is_new:
            api.sweeps.delete(sweep["key"])
            notify(Notice(f"sweep {sweep['id']} is deleted"))
        raise
    return SweepSubmitted(sweep, submission.plan, done)
