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

The file is W&B's, unchanged (docs/sweep-files.md of the repository). SWEEP is an id, a name, or a
part of either. Ctrl-C asks what you want: leave it running, drain, stop, or carry on. Without a
terminal it asks the running trials to end, and they go back to the queue; a second Ctrl-C kills
them. The exit code is 0 when a trial has finished and the sweep did not fail, else 1.
"""

from __future__ import annotations

import argparse
import shlex
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

from runyard.actions.ending.steering import STEERING
from runyard.actions.naming import find_sweep
from runyard.cli.completers import complete_sweep_or_file
from runyard.cli.connect import server
from runyard.cli.option_groups import (
    add_slot_arguments,
    add_warm_argument,
    project_options,
    read_slots,
)
from runyard.cli.output import console, print_json, say, show
from runyard.cli.parser import add, duration, flag, positive, refuse_options
from runyard.cli.slurm_options import add_slurm_arguments, refuse_slurm_options
from runyard.cli.watching.sweep_view import steer
from runyard.errors import UsageError
from runyard.printable import numbered
from runyard.schedulers.choice import has_queue
from runyard.shapes.sweeps import Sweep

if TYPE_CHECKING:
    from runyard.actions.sweeping.agent_process import Limits
    from runyard.actions.sweeping.sweep_plan import Plan, SweepSource


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "runyard sweep [options] [FILE|SWEEP]"
    add(parser, "sweep FILE|SWEEP", "a sweep file, or a sweep (or -w SWEEP)",
        nargs="?", completer=complete_sweep_or_file)  # fmt: skip
    add_slot_arguments(parser)
    add(parser, "--count N", "take at most N trials, then end", type=positive)
    add(parser, "-t --time TIME", "end after this long (90s, 30m, 2h, 1-12:00:00): what runs saves "
        "and goes on the next time", type=duration)  # fmt: skip
    add(parser, "--grace TIME", "how long before the end programs are told to save (default: a "
        "tenth of the time, at most 2m)", type=duration)  # fmt: skip
    add(parser, "--server URL|cloud", "join ENTITY/PROJECT/SWEEP at this server, by W&B's protocol "
        "(default: WANDB_BASE_URL where it is another one than ours)")  # fmt: skip
    flag(parser, "--no-run", "make it, and run nothing")
    flag(parser, "--dry-run", "show what it would be; make nothing")
    flag(parser, "--no-check", "make it even if the program does not know a parameter")
    flag(parser, "--json", "print the outcome as JSON")
    made = parser.add_argument_group("what a new sweep takes from here instead of its file")
    add(made, "-e --name", "name of the sweep; on slurm, also of folders and logs")
    add(made, "-P --project", "project (default: the file's, runyard.yaml's, or this folder's "
        "name)")  # fmt: skip
    add(made, "-E --entity", "user or team to whom it belongs")
    add(made, "--method", "how settings are chosen, instead of as the file says",
        choices=("grid", "random", "bayes", "tpe", "cmaes", "qmc"))  # fmt: skip
    add(made, "--run-cap N", "at most N trials in all", type=positive)
    add(made, "--budget AMOUNT", "begin no trial beyond it: 200gpu-hours, or 12hours of all "
        "trials; a larger one lets an ended sweep go on")  # fmt: skip
    add(made, "--seed", "of the search: the same seed, the same draws", type=int)
    add_warm_argument(made)
    add(made, "--set NAME=VALUE", "a parameter (lr=0.1, lr=[0.1,0.2]) or a key of the file "
        "(runyard.seeds=3); may be repeated", action="append", default=[])  # fmt: skip
    add(made, "-R --prior-run RUN", "a run that the search knows of; may be repeated",
        action="append", default=[])  # fmt: skip
    add_slurm_arguments(parser)
    steering = parser.add_argument_group("steer a sweep").add_mutually_exclusive_group()
    for name, (help_text, _) in STEERING.items():
        flag(steering, f"--{name}", help_text)


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
    # Agents on the cluster have a dry run, and an experiment's name, of their own.
    own = "" if has_queue(args.on) else "dry-run name "
    why = f"{{0}} is for a sweep file, and there is no file {args.sweep}"
    mend = "`runyard sweep SWEEP` joins a sweep; `runyard runs --sweeps` lists them"
    refuse_options(args, f"{own}no-run method set prior-run seed warm", why, mend)
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
    from runyard.actions.sweeping.elsewhere import sweep_elsewhere

    sweep = sweep_elsewhere(args.server, args.sweep, show)
    if sweep is None:
        return None
    from runyard.actions.sweeping.work import work_elsewhere
    from runyard.cli.starting.working import Terminal

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
        from runyard.cli.starting.submission_view import send

        flags, slots = given_flags(args), args.slots or 1
        return send(args, partial(submit_sweep, plan, flags, slots, args.prior_run))
    if args.dry_run:
        _preview(plan, as_json=args.json)
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
    if made["expected"] is None and made["budget"] is None and args.count is None:
        say("it ends with Ctrl-C, `runyard sweep --stop`, a --run-cap or a --budget")
    say(f"to help from another terminal:  runyard sweep {made['id']}   or:  wandb agent {place}")
    return _work(args, {**made, "folder": str(plan.folder)})


def _preview(plan: Plan, *, as_json: bool) -> None:
    """What a sweep would be, without making it."""
    from runyard.actions.sweeping.sweep import first_trials

    trials = first_trials(plan)
    if as_json:
        print_json({"method": plan.sweep.method, "trials": plan.size, "folder": str(plan.folder),
                    "first": [asdict(trial) for trial in trials]})  # fmt: skip
        return
    out = console()
    size = numbered(plan.size, "trial") if plan.size else "no end of its own (run_cap sets one)"
    metric = "".join(f", {objective.goal} {objective.name}" for objective in plan.sweep.metrics)
    out.print(f"{plan.source}: {plan.sweep.method}{metric}: {size}", style="bold", soft_wrap=True)
    out.print(f"  programs run in {plan.folder}", soft_wrap=True)
    if plan.sweep.method not in ("grid", "random"):
        out.print("  the first trials could be these; later ones follow from results")
    for trial in trials:
        out.print(f"\n{trial.name}", style="bold", soft_wrap=True)
        out.print(f"  {shlex.join(trial.command)}", soft_wrap=True)
    left = None if plan.size is None else plan.size - len(trials)
    if left is None or left > 0:
        out.print(f"\n... and {'more' if left is None else f'{left} more'}")
    out.print("\nnothing was made; without --dry-run it begins", soft_wrap=True)


def _source(args: argparse.Namespace) -> SweepSource:
    from runyard.actions.sweeping.sweep_plan import SweepSource
    from runyard.config.overrides import Overrides

    overrides = Overrides(
        name=args.name, run_cap=args.run_cap, method=args.method, seed=args.seed,
        warm=args.warm, budget=args.budget, sets=tuple(args.set),
    )  # fmt: skip
    return SweepSource(args.sweep, overrides, project_options(args), not args.no_run)


def _join(args: argparse.Namespace) -> int:
    from runyard.actions.sweeping.sweep import change_bounds, join_sweep

    api = server()
    sweep = change_bounds(api, find_sweep(api, args.sweep), args.run_cap, args.budget)
    if has_queue(args.on):
        from runyard.cli.starting.agents import add_on_slurm

        return add_on_slurm(args, sweep)
    return _work(args, join_sweep(sweep, show))


def _work(args: argparse.Namespace, sweep: Sweep) -> int:
    from runyard.actions.sweeping.work import WorkRequest
    from runyard.cli.starting.working import work_on

    request = WorkRequest(sweep, project_options(args), read_slots(args), _limits(args))
    return work_on(request, as_json=args.json)


def _limits(args: argparse.Namespace) -> Limits:
    from runyard.actions.sweeping.agent_process import Limits

    return Limits(args.count, args.time, args.grace)
