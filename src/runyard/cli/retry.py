"""Run failed trials again, in their folders and under their names.

  runyard retry SWEEP                        all that failed
  runyard retry SWEEP --cause memory --memory +50%    those that ran out of memory, with more
  runyard retry SWEEP --cause time --time 4h
  runyard retry SWEEP --exclude-node         not on the nodes where they failed
  runyard retry SWEEP --trial NAME           only this one; may be repeated
  runyard retry 4021                         those that failed in a job

A sweep that ran on Slurm gets a new job for them, with what its last job asked for, changed by what
is said here. Otherwise an agent that is at work takes them, or they run here. SWEEP and TRIAL are
an id, a name, or a part of either; without it, the newest sweep.
"""

from __future__ import annotations

import argparse
import math
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runyard.actions import naming
from runyard.actions.naming import find_sweep
from runyard.actions.tracking import agent_variables
from runyard.cli.asked_before import KEPT, keep_asked
from runyard.cli.completers import NAMED, complete_named
from runyard.cli.connect import server
from runyard.cli.output import print_json, say, show
from runyard.cli.project_options import project_options
from runyard.cli.slots import add_slot_arguments, read_slots
from runyard.cli.slurm_options import HERE, SLURM, add_slurm_arguments
from runyard.client.api import Api
from runyard.client.jobs import Job
from runyard.client.sweeps import Sweep, Trial
from runyard.errors import NotFoundError, UsageError
from runyard.home import locate
from runyard.reading.problems import nearest

# How config/flags names what a command line gives.
_MEMORY, _TIME, _EXCLUDE = (
    "request:resources.memory", "request:resources.time", "request:resources.exclude",
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "runyard retry [options] [SWEEP|TRIAL|JOB]"
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
    parser.add_argument("--no-run", action="store_true", help="put them into the queue, no more")
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


@dataclass(frozen=True)
class More:
    """So many times what it had."""

    factor: float
    text: str


def run(args: argparse.Namespace) -> int:
    api = server()
    found, wanted = _find(api, args.what)
    failed = [one for one in api.sweeps.trials(found["key"], state="failed") if wanted(one)]
    chosen = _chosen(args, found, failed)
    jobs = api.jobs.jobs(sweep=found["key"], limit=1)
    on_slurm = args.on == SLURM or (not args.on and bool(jobs))
    if on_slurm and not args.no_run:
        return _on_slurm(api, args, found, chosen, jobs[0] if jobs else None)
    if args.dry_run:
        say(f"{_named(chosen)} would run again; nothing was changed")
        return 0
    after = _again(api, found, chosen)
    if args.no_run or (after["agents"] and args.on != HERE):
        if not after["agents"]:
            say(f"nobody works on it: `runyard sweep {after['id']}` does")
        if args.json:
            print_json(after)
        return 0
    from runyard.cli.farm_work import work_on

    os.environ.update(agent_variables(project_options(args), Path(after["folder"] or "."), show))
    return work_on(locate(), after, slots=read_slots(args).of_sweep(after), as_json=args.json)


def _find(api: Api, words: str | None) -> tuple[Sweep, Callable[[Trial], bool]]:
    """The sweep, and which of its trials are meant."""
    if words is None:
        return find_sweep(api, None), lambda _trial: True
    found = naming.find(api, words)
    if found.sweep is not None:
        return found.sweep, lambda _trial: True
    if found.run is not None:
        place = found.run["trial"]
        if place is None:
            raise UsageError(
                f"{found.run['name']} ({found.run['id']}) is no trial of a sweep",
                mend=f"`runyard rerun {found.run['id']}` runs it once more",
            )
        number = place["number"]
        return api.sweeps.sweep(place["sweep"]), lambda trial: trial["number"] == number
    job = found.job
    if job is None or job["sweep"] is None:
        raise UsageError(
            f"job {found.number or words} ran no trials that runyard knows",
            mend="`runyard jobs` lists its jobs with their sweeps",
        )
    which = job["job_id"] if found.task is None else f"{job['job_id']}_{found.task}"
    return (
        api.sweeps.sweep(job["sweep"]),
        lambda trial: (
            which
            in (
                trial["job"],
                (trial["job"] or "").partition("_")[0],
            )
        ),
    )


def _again(api: Api, sweep: Sweep, chosen: list[Trial]) -> Sweep:
    after = api.sweeps.retry(sweep["key"], [one["number"] for one in chosen])
    say(f"sweep {after['id']}: {len(chosen)} failed trials run again")
    return after


def _on_slurm(
    api: Api, args: argparse.Namespace, sweep: Sweep, chosen: list[Trial], last: Job | None
) -> int:
    """A job for them, with what the last one had and what is changed now."""
    from runyard.cli.on_slurm import nothing_was_submitted, plan_submission, send_or_undo
    from runyard.cli.sweep_watch import working_folder

    asked = {} if last is None else last["asked"]
    _change(args, asked, sorted({one["node"] for one in chosen if one["node"]}))
    submission = plan_submission(
        args,
        kind="retry",
        folder=Path(working_folder(sweep["folder"])),
        trials=len(chosen),
        slots=args.slots or 1,
    )
    if args.dry_run:
        say(f"{_named(chosen)} would run again")
        submission.preview()
        return 0
    confirmed = submission.confirmed(args)
    if confirmed is None:
        return nothing_was_submitted()
    if sweep["agents"]:
        say("agents that are at work may take them too, with what they have")
    after = _again(api, sweep, chosen)
    try:
        return send_or_undo(confirmed, after, as_json=args.json, is_new=False)
    except Exception:
        say(
            f"the trials wait in the queue: `runyard agents add {after['id']} --on slurm` runs them"
        )
        raise


def _change(args: argparse.Namespace, asked: dict[str, Any], failed_on: list[str]) -> None:
    """Put what the last job asked for, and what is to be changed, among the options."""
    from runyard.config.flags import Given

    values = vars(args)
    for setting in KEPT:
        path, name = f"request:{setting}", setting.rpartition(".")[2]
        given = values.get(path)
        if isinstance(given, Given) and isinstance(given.value, More):
            if asked.get(name) is None:
                example = "32G" if name == "memory" else "4h"
                raise UsageError(
                    f"--{name} {given.value.text}: it is not known how much it had",
                    mend=f"say how much it is to have: --{name} {example}",
                )
            more = math.ceil(float(asked[name]) * given.value.factor)
            values[path] = Given(more, given.value.text)
    keep_asked(args, asked)
    nodes = str(asked.get("exclude") or "").split(",")
    if args.exclude_node:
        nodes += failed_on
        say(f"not on {', '.join(failed_on)}" if failed_on else "it is not known where they failed")
    kept = [one for one in dict.fromkeys(nodes) if one]
    if kept:
        values[_EXCLUDE] = [*(values.get(_EXCLUDE) or ()), *(Given(one, one) for one in kept)]


def _or_more(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """An amount, or a change of what there was: +50%, x2, 150%."""

    def read(text: str) -> Any:
        from runyard.config.flags import Given

        found = re.fullmatch(r"\+(\d+(?:\.\d+)?)%|x(\d+(?:\.\d+)?)", text)
        if found is None:
            return parse(text)
        factor = 1 + float(found[1]) / 100 if found[1] else float(found[2])
        if factor <= 0:
            raise argparse.ArgumentTypeError(f"{text!r} leaves nothing")
        return Given(More(factor, text), text)

    return read


def _named(chosen: list[Trial]) -> str:
    names = ", ".join(one["name"] for one in chosen[:5])
    more = f" and {len(chosen) - 5} more" if len(chosen) > 5 else ""
    return f"{len(chosen)} failed trials ({names}{more})"


def _chosen(args: argparse.Namespace, sweep: Sweep, failed: list[Trial]) -> list[Trial]:
    if not failed:
        raise UsageError(
            f"no trial of {_of(args, sweep)} has failed",
            mend=f"`runyard show {sweep['id']}` says how it stands; `runyard rerun TRIAL` runs any "
            "trial once more",
        )
    chosen = failed
    if args.cause is not None:
        chosen = [one for one in failed if one["cause"] == args.cause]
        if not chosen:
            causes = ", ".join(sorted({one["cause"] or "program" for one in failed}))
            raise NotFoundError(
                f"no trial of sweep {sweep['id']} failed for {args.cause!r}",
                mend=f"they failed for: {causes}",
            )
    for name in args.trial or ():
        names = {text for one in failed for text in (one["name"], one["id"])}
        if name not in names:
            guess = nearest(name, names)
            raise NotFoundError(
                f"no failed trial of sweep {sweep['id']} is called {name!r}",
                mend=f"did you mean {guess}?" if guess else f"`runyard status {sweep['id']}`",
            )
    if args.trial:
        chosen = [one for one in chosen if {one["name"], one["id"]} & set(args.trial)]
    return chosen


def _of(args: argparse.Namespace, sweep: Sweep) -> str:
    is_part = args.what is not None and args.what not in (sweep["id"], sweep["name"])
    return f"sweep {sweep['id']}" + (f" ({args.what})" if is_part else "")
