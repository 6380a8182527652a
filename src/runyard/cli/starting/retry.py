"""Run failed trials again, in their folders and under their names; or any run once more.

  runyard retry SWEEP                        all that failed
  runyard retry SWEEP --cause memory --memory +50%    those that ran out of memory, with more
  runyard retry SWEEP --cause time --time 4h
  runyard retry SWEEP --exclude-node         not on the nodes where they failed
  runyard retry SWEEP --trial NAME           only this one; may be repeated
  runyard retry 4021                         those that failed in a job
  runyard retry a1b2c3d4                     a run, or a trial that did not fail, once more: the
                                             same command and values, as a new run

A sweep that ran on Slurm gets a new job for them, with what its last job asked for, changed by what
is said here. Otherwise an agent that is at work takes them, or they run here. A new run runs here,
in the folder of the old one, unless --on says otherwise. SWEEP, TRIAL and RUN are an id, a name, or
a part of either; without it, the newest sweep.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import Any

from runyard.actions.retry import More, RetryRequest, name_some, retry
from runyard.actions.sweeping.task_lists import ListRequest, submit_list
from runyard.cli.completers import NAMED, complete_named
from runyard.cli.letters import spelled
from runyard.cli.output import print_json, say
from runyard.cli.project_options import project_options
from runyard.cli.slurm_options import add_slurm_arguments
from runyard.cli.starting.farm import preview, start
from runyard.cli.starting.slots import add_slot_arguments, read_slots
from runyard.cli.starting.submission_view import cluster_options, show_submission, tell_outcome
from runyard.schedulers.choice import has_queue

# How cli/resource_flags names what a command line gives.
_MEMORY, _TIME = "request:resources.memory", "request:resources.time"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "runyard retry [options] [SWEEP|TRIAL|RUN|JOB]"
    which = parser.add_argument("what", nargs="?", metavar=NAMED, help="default: the newest sweep")
    which.completer = complete_named  # type: ignore[attr-defined]
    parser.add_argument(
        "--cause",
        metavar="CAUSE",
        help="only those that failed so: memory, time, node, program, signal, nan",
    )
    parser.add_argument("--trial", action="append", metavar="NAME", help="only this one")
    add_slot_arguments(parser)
    parser.add_argument(
        "--exclude-node", action="store_true", help="not on the nodes where they failed"
    )
    parser.add_argument(
        "--new-run", action="store_true", help="as a new run, also where it is a trial that failed"
    )
    parser.add_argument("--no-run", action="store_true", help="put them into the queue, no more")
    parser.add_argument(
        *spelled("--quiet"), action="store_true", help="of a new run show progress, not the output"
    )
    parser.add_argument(*spelled("--project"), help="project of a new run (default: as it was)")
    parser.add_argument(*spelled("--entity"), help="user or team to whom a new run belongs")
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="show which would run and what would be sent; change nothing",
    )
    parser.add_argument("--json", action="store_true", help="print the sweep as JSON")
    add_slurm_arguments(parser, default="")
    for action in parser._actions:
        if action.dest == "on":
            action.help = "here or slurm (default: where it ran)"
        if action.dest in (_MEMORY, _TIME) and callable(action.type):
            action.type = _or_more(action.type)
            action.help = f"{action.help}; +50%% and x2 change what it had"


def run(args: argparse.Namespace) -> int:
    outcome = retry(_request(args), show_submission)
    if isinstance(outcome, ListRequest):
        return _start_new_run(args, outcome)
    sweep = outcome.sweep
    if outcome.submission is not None:
        return tell_outcome(outcome.submission, as_json=args.json)
    if args.dry_run:
        say(f"{name_some(outcome.trials)} would run again; nothing was changed")
        return 0
    if not outcome.needs_agent:
        if not sweep["agents"]:
            say(f"nobody works on it: `runyard sweep {sweep['id']}` does")
        if args.json:
            print_json(sweep)
        return 0
    from runyard.actions.sweeping.work import WorkRequest
    from runyard.cli.starting.working import work_on

    return work_on(WorkRequest(sweep, project_options(args), read_slots(args)), as_json=args.json)


def _start_new_run(args: argparse.Namespace, request: ListRequest) -> int:
    if has_queue(args.on):
        outcome = submit_list(request, "run", cluster_options(args), show_submission)
        return tell_outcome(outcome, as_json=args.json)
    if args.dry_run:
        preview(request.tasks, as_json=args.json)
        return 0
    return start(request, as_json=args.json, quiet=args.quiet, no_run=args.no_run)


def _request(args: argparse.Namespace) -> RetryRequest:
    return RetryRequest(
        what=args.what,
        cause=args.cause,
        trials=args.trial or (),
        options=project_options(args),
        slots=read_slots(args),
        excludes_nodes=args.exclude_node,
        on_cluster=has_queue(args.on) if args.on else None,
        only_queue=args.no_run,
        as_new_run=args.new_run,
        cluster=cluster_options(args),
    )


def _or_more(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """An amount, or a change of what there was: +50%, x2, 150%."""

    def read(text: str) -> Any:
        from runyard.config.flags import Given

        change = re.fullmatch(r"\+(\d+(?:\.\d+)?)%|x(\d+(?:\.\d+)?)", text)
        if change is None:
            return parse(text)
        factor = 1 + float(change[1]) / 100 if change[1] else float(change[2])
        if factor <= 0:
            raise argparse.ArgumentTypeError(f"{text!r} leaves nothing")
        return Given(More(factor, text), text)

    return read
