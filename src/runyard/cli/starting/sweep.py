"""Make a sweep of a file and run it here, or join a sweep that is there.

  runyard sweep sweep.yaml -j 4       four trials at a time, until it is done
  runyard sweep sweep.yaml --per-gpu auto   as many on each GPU as get the most done
  runyard sweep SWEEP                 join it: from another terminal, or go on after Ctrl-C
  runyard sweep sweep.yaml --dry-run  what it would run
  runyard sweep sweep.yaml --on slurm --gpus 1 --at-once 8    on the cluster; comes back at once
  runyard sweep SWEEP --on slurm      join it with agents on the cluster, as `runyard agents add`
  runyard sweep --pause SWEEP         begin no more trials (--resume goes on)
  runyard sweep --stop SWEEP          let what runs finish, then end (--cancel ends it at once)
  runyard sweep --server cloud ENTITY/PROJECT/SWEEP   work for a sweep at W&B

The file is W&B's, unchanged; docs/sweeps.md tells what can stand in it. SWEEP is an id, a name, or
a part of either. Ctrl-C asks what you want: leave it running, drain, stop, or carry on. Without a
terminal it asks the running trials to end, and they go back to the queue; a second Ctrl-C kills
them. The exit code is 0 when a trial has finished and the sweep did not fail, else 1.
"""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from runyard.actions.ending.steering import STEERING
from runyard.actions.naming import find_sweep
from runyard.cli.completers import complete_sweep_or_file
from runyard.cli.connect import server
from runyard.cli.letters import spelled
from runyard.cli.output import print_json, say, show
from runyard.cli.parser import duration, positive
from runyard.cli.project_options import project_options
from runyard.cli.slurm_options import add_slurm_arguments, refuse_slurm_options
from runyard.cli.starting.slots import add_slot_arguments, read_slots
from runyard.cli.watching.sweep_view import steer
from runyard.client.sweeps import Sweep
from runyard.errors import UsageError
from runyard.home import locate
from runyard.schedulers.choice import has_queue

if TYPE_CHECKING:
    from runyard.actions.sweeping.agent_process import Limits
    from runyard.actions.sweeping.sweep_plan import SweepSource


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "runyard sweep [options] [FILE|SWEEP]"
    which = parser.add_argument("sweep", nargs="?", metavar="FILE|SWEEP",
                                help="a sweep file, or a sweep (or -w SWEEP)")  # fmt: skip
    which.completer = complete_sweep_or_file  # type: ignore[attr-defined]
    add_slot_arguments(parser)
    parser.add_argument(
        "--count", type=positive, metavar="N", help="take at most N trials, then end"
    )
    parser.add_argument(*spelled("--time"), type=duration, metavar="TIME",
                        help="end after this long (90s, 30m, 2h, 1-12:00:00): what runs saves "
                        "and goes on the next time")  # fmt: skip
    parser.add_argument("--grace", type=duration, metavar="TIME",
                        help="how long before the end programs are told to save "
                        "(default: a tenth of the time, at most 2m)")  # fmt: skip
    parser.add_argument("--server", metavar="URL|cloud",
                        help="join ENTITY/PROJECT/SWEEP at this server, by W&B's protocol "
                        "(default: WANDB_BASE_URL where it is another one than ours)")  # fmt: skip
    parser.add_argument("--no-run", action="store_true", help="make it, and run nothing")
    parser.add_argument(
        "--dry-run", action="store_true", help="show what it would be; make nothing"
    )
    parser.add_argument("--no-check", action="store_true",
                        help="make it even if the program does not know a parameter")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
    made = parser.add_argument_group("what a new sweep takes from here instead of its file")
    made.add_argument(*spelled("--name"),
                      help="name of the sweep; on slurm, also of folders and logs")  # fmt: skip
    made.add_argument(
        *spelled("--project"),
        help="project (default: the file's, runyard.yaml's, or this folder's name)",
    )
    made.add_argument(*spelled("--entity"), help="user or team to whom it belongs")
    made.add_argument("--method", choices=("grid", "random", "bayes", "tpe", "cmaes", "qmc"),
                      help="how settings are chosen, instead of as the file says")  # fmt: skip
    made.add_argument("--run-cap", type=positive, metavar="N", help="at most N trials in all")
    made.add_argument("--seed", type=int, help="of the search: the same seed, the same draws")
    made.add_argument("--set", action="append", default=[], metavar="NAME=VALUE",
                      help="a parameter (lr=0.1, lr=[0.1,0.2]) or a key of the file "
                      "(runyard.seeds=3); may be repeated")  # fmt: skip
    made.add_argument(*spelled("--prior-run"), action="append", default=[], metavar="RUN",
                      help="a run that the search knows of; may be repeated")  # fmt: skip
    add_slurm_arguments(parser)
    steering = parser.add_argument_group("steer a sweep").add_mutually_exclusive_group()
    for name, (help_text, _) in STEERING.items():
        steering.add_argument(f"--{name}", action="store_true", help=help_text)


def run(args: argparse.Namespace) -> int:
    refuse_slurm_options(args)
    args.sweep = _which(args)
    action = next((name for name in STEERING if getattr(args, name.replace("-", "_"))), None)
    if action is not None:
        api = server()
        return steer(api, find_sweep(api, args.sweep), action, as_json=args.json)
    from runyard.actions.sweeping.sweep_plan import looks_like_file

    if looks_like_file(args.sweep):
        return _create(args)
    for option in ("dry_run", "no_run", "method", "name", "set", "prior_run", "seed"):
        # Agents on the cluster have a dry run, and an experiment's name, of their own.
        if getattr(args, option) and not (option in ("dry_run", "name") and has_queue(args.on)):
            name = option.replace("_", "-")
            raise UsageError(
                f"--{name} is for a sweep file, and there is no file {args.sweep}",
                mend="`runyard sweep SWEEP` joins a sweep; `runyard runs --sweeps` lists them",
            )
    elsewhere = _elsewhere(args)
    return elsewhere if elsewhere is not None else _join(args)


def _which(args: argparse.Namespace) -> str:
    """The file or the sweep: the argument, or the sweep that -w names."""
    from runyard.cli.resource_flags import given_flags

    named = given_flags(args)["sweep_id"] if has_queue(args.on) else None
    if bool(args.sweep) == bool(named):
        wrong = f"two sweeps: {args.sweep} and -w {named}" if named else "which sweep?"
        raise UsageError(f"runyard sweep: {wrong}", mend="runyard sweep sweep.yaml")
    return str(args.sweep or named)


def _elsewhere(args: argparse.Namespace) -> int | None:
    """Work for a sweep at another server, where one is meant; None where none is."""
    if args.server is None and "/" not in args.sweep:
        return None
    from runyard.actions.sweeping.elsewhere import find_elsewhere, server_elsewhere
    from runyard.actions.sweeping.work import work_elsewhere
    from runyard.cli.starting.working import Terminal

    url = server_elsewhere(args.server, locate(), os.environ)
    if url is None:
        return None
    sweep = find_elsewhere(url, args.sweep, show)
    attended = work_elsewhere(sweep, read_slots(args), _limits(args), Terminal(), show)
    return attended.process.returncode if attended.signal is None else 128 + attended.signal


def _create(args: argparse.Namespace) -> int:
    from runyard.actions.sweeping.sweep import create_sweep, estimate_sweep, submit_sweep
    from runyard.actions.sweeping.sweep_plan import make_plan

    plan = make_plan(_source(args), show)
    if not args.no_check:
        from runyard.actions.trying.program_checks import check_plan

        check_plan(plan, show, refuses=not args.dry_run or has_queue(args.on))
    if has_queue(args.on):
        from runyard.cli.resource_flags import given_flags
        from runyard.cli.starting.submission_view import (
            cluster_options,
            show_submission,
            tell_outcome,
        )

        outcome = submit_sweep(
            plan, given_flags(args), args.slots or 1, args.prior_run, cluster_options(args),
            show_submission,
        )  # fmt: skip
        return tell_outcome(outcome, as_json=args.json)
    if args.dry_run:
        from runyard.cli.starting.sweep_preview import preview

        preview(plan, as_json=args.json)
        estimate_sweep(plan, args.slots, show)
        return 0
    made = create_sweep(plan, args.prior_run, show)
    estimate_sweep(plan, args.slots, show, made)
    place = f"{made['entity']}/{made['project']}/{made['id']}"
    if args.no_run:
        say(f"to run it:  runyard sweep {made['id']}")
        say(f'      or:  eval "$(runyard env)" && wandb agent {place}')
        if args.json:
            print_json(made)
        return 0
    if made["expected"] is None and args.count is None:
        say("it ends with Ctrl-C, `runyard sweep --stop`, or a --run-cap")
    say(f"more agents:  runyard sweep {made['id']}   or:  wandb agent {place}")
    return _work(args, {**made, "folder": str(plan.folder)})


def _source(args: argparse.Namespace) -> SweepSource:
    from runyard.actions.sweeping.sweep_plan import SweepSource
    from runyard.config.overrides import Overrides

    overrides = Overrides(
        name=args.name,
        run_cap=args.run_cap,
        method=args.method,
        seed=args.seed,
        sets=tuple(args.set),
    )
    return SweepSource(args.sweep, overrides, project_options(args), not args.no_run)


def _join(args: argparse.Namespace) -> int:
    from runyard.actions.sweeping.sweep import join_sweep

    api = server()
    sweep = find_sweep(api, args.sweep)
    if has_queue(args.on):
        from runyard.cli.starting.agents import add_on_slurm

        return add_on_slurm(args, sweep)
    return _work(args, join_sweep(api, sweep, args.run_cap, show))


def _work(args: argparse.Namespace, sweep: Sweep) -> int:
    from runyard.actions.sweeping.work import WorkRequest
    from runyard.cli.starting.working import work_on

    request = WorkRequest(sweep, project_options(args), read_slots(args), _limits(args))
    return work_on(request, as_json=args.json)


def _limits(args: argparse.Namespace) -> Limits:
    from runyard.actions.sweeping.agent_process import Limits

    return Limits(args.count, args.time, args.grace)
