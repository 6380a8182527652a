"""A submission on a terminal: what would be sent, the questions before it, what became of it."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING

from runyard.actions.events import Event, Notify
from runyard.cli.output import print_json, say, show
from runyard.cli.questions import ask_number, ask_sure

if TYPE_CHECKING:
    from runyard.actions.submitting.submission import ClusterOptions, Outcome, SweepSubmitted


class _OnTerminal:
    """Asks whoever sits there."""

    def agents(self, usual: int) -> int:
        return ask_number("how many agents?", usual)

    def submit(self) -> bool:
        return ask_sure("submit this?", usual=True)


def cluster_options(args: argparse.Namespace) -> ClusterOptions:
    """Nobody is asked with --yes, nor where nobody is there to answer."""
    from runyard.actions.submitting.submission import ClusterOptions

    asks = not args.yes and sys.stdin.isatty() and sys.stderr.isatty()
    return ClusterOptions(args.dry_run, not args.no_snapshot, _OnTerminal() if asks else None)


def send(args: argparse.Namespace, submit: Callable[[ClusterOptions, Notify], Outcome]) -> int:
    """Submit by an action, as the command line says, and tell what became of it."""
    outcome = submit(cluster_options(args), show_submission)
    return tell_outcome(outcome, as_json=getattr(args, "json", False))


def show_submission(event: Event) -> None:
    from runyard.actions.submitting.submission import ScriptShown

    if not isinstance(event, ScriptShown):
        show(event)
        return
    say(f"this is sent to:  {shlex.join(event.command)}")
    if event.jobs > 1:
        after = ", each after the one before it" if event.one_after_another else ""
        say(f"as {event.jobs} jobs{after}, of {event.tasks} and fewer tasks; the first is:")
    sys.stdout.write(event.script)
    sys.stdout.flush()


def tell_outcome(outcome: Outcome, *, as_json: bool) -> int:
    """What became of it; the exit code."""
    from runyard.actions.submitting.submission import Declined, Previewed

    if isinstance(outcome, Declined):
        say("nothing was submitted")
        return 1
    if isinstance(outcome, Previewed):
        if outcome.answer is not None:
            say(f"Slurm says:  {outcome.answer}")
        say("nothing was made or submitted")
    else:
        _tell_submitted(outcome, as_json=as_json)
    return 0


def _tell_submitted(outcome: SweepSubmitted, *, as_json: bool) -> None:
    """What was submitted, how to watch it, where its logs are."""
    plan, done, sweep = outcome.plan, outcome.submitted, outcome.sweep
    ids = [job.job_id for job in done.jobs]
    if as_json:
        jobs, folder = [asdict(job) for job in done.jobs], str(plan.places.job)
        print_json({"sweep": sweep["id"], "jobs": jobs, "held": done.held, "folder": folder,
                    "logs": plan.log_pattern})  # fmt: skip
    else:
        print("\n".join(ids))
    tasks = sum(job.tasks for job in done.jobs)
    many = "an agent" if tasks == 1 else f"{tasks} agents"
    say(f"job {', '.join(ids)}: {many} for sweep {sweep['id']}")
    if done.held:
        say(
            f"{done.held} more agents are held back ({done.why_left}); they are sent when there is "
            "room, and until then the others do their work"
        )
    say(f"watch it:  runyard status {sweep['id']} --watch")
    say(f"its logs:  runyard logs -f {sweep['id']}   or in {plan.logs}")
    say(f"end it:    runyard cancel {sweep['id']}")
