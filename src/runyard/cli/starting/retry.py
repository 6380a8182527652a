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
from collections.abc import Callable
from typing import Any

from runyard.actions.retry import RetryRequest, name_some, read_more, retry
from runyard.actions.sweeping.task_lists import ListRequest
from runyard.cli.completers import NAMED, complete_named
from runyard.cli.option_groups import add_slot_arguments, project_options, read_slots
from runyard.cli.output import print_json, say
from runyard.cli.parser import add, flag, typed
from runyard.cli.slurm_options import add_slurm_arguments
from runyard.cli.starting.farm import launch
from runyard.cli.starting.submission_view import cluster_options, show_submission, tell_outcome
from runyard.schedulers.choice import has_queue

# How cli/resource_flags names what a command line gives.
_MEMORY, _TIME = "request:resources.memory", "request:resources.time"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "runyard retry [options] [SWEEP|TRIAL|RUN|JOB]"
    add(parser, "what", "default: the newest sweep",
        nargs="?", metavar=NAMED, completer=complete_named)  # fmt: skip
    add(parser, "--cause CAUSE", "only those that failed so: memory, time, node, program, signal, "
        "nan")  # fmt: skip
    add(parser, "--trial NAME", "only this one", action="append")
    add_slot_arguments(parser)
    flag(parser, "--exclude-node", "not on the nodes where they failed")
    flag(parser, "--new-run", "as a new run, also where it is a trial that failed")
    flag(parser, "--no-run", "put them into the queue, no more")
    flag(parser, "-q --quiet", "of a new run show progress, not the output")
    add(parser, "-P --project", "project of a new run (default: as it was)")
    add(parser, "-E --entity", "user or team to whom a new run belongs")
    flag(parser, "--dry-run", "show which would run and what would be sent; change nothing")
    flag(parser, "--json", "print the sweep as JSON")
    add_slurm_arguments(parser, default="")
    for action in parser._actions:
        if action.dest == "on":
            action.help = "here or slurm (default: where it ran)"
        if action.dest in (_MEMORY, _TIME) and callable(action.type):
            action.type = _or_more(action.type)
            if action.help is not argparse.SUPPRESS:
                action.help = f"{action.help}; +50%% and x2 change what it had"


def run(args: argparse.Namespace) -> int:
    outcome = retry(_request(args), show_submission)
    if isinstance(outcome, ListRequest):
        return launch(args, outcome, "run")
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


def _request(args: argparse.Namespace) -> RetryRequest:
    on_cluster = has_queue(args.on) if args.on else None
    return RetryRequest(
        args.what, args.cause, args.trial or (), project_options(args), read_slots(args),
        excludes_nodes=args.exclude_node, on_cluster=on_cluster, only_queue=args.no_run,
        as_new_run=args.new_run, cluster=cluster_options(args),
    )  # fmt: skip


def _or_more(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """An amount, or a change of what there was."""
    from runyard.config.flags import FlagValue

    def read(text: str) -> Any:
        more = read_more(text)
        return parse(text) if more is None else FlagValue(more, text)

    return typed(read)
