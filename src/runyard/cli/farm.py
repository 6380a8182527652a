"""Run a list of command lines: a file with one a line, or every combination of a line with braces.

  runyard farm tasks.txt -j 4          four at a time, until all have run (or: < tasks.txt)
  runyard farm tasks.txt --per-gpu 4   four on each GPU (auto: as many as get the most done)
  runyard farm --grid 'python train.py --lr {0.1,0.01} --seed {1..5}' -j 4
  runyard farm tasks.txt --dry-run     what would run, under which names
  runyard farm tasks.txt --split 4     files of four lines: tasks/tasks_0.txt and so on
  runyard farm tasks.txt --on slurm --gpus 1 --per-gpu 4    on the cluster, four on each GPU

Each line is a trial of a sweep and tracked as a run, with its console and its exit code, whether it
uses wandb or not. A line is the shell's; empty ones and those that begin with # are passed over.
What they print is shown as it comes, each line marked, and kept in sweeps/SWEEP/NAME/output.log.

The job log has the columns of GNU parallel's --joblog. The exit code is the number of lines that
failed (101: more than 100). `runyard retry SWEEP` runs those again.
"""

from __future__ import annotations

import argparse
import os
import shutil
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runyard.actions.owner import find_owner
from runyard.actions.tracking import agent_variables
from runyard.cli.completers import complete_file
from runyard.cli.connect import server
from runyard.cli.halting import halt
from runyard.cli.letters import spelled
from runyard.cli.on_slurm import nothing_was_submitted, plan_submission, send_or_undo
from runyard.cli.output import console, print_json, say, show
from runyard.cli.parser import count, positive
from runyard.cli.project_options import project_options
from runyard.cli.slots import add_slot_arguments, read_slots
from runyard.cli.slurm_options import SLURM, add_slurm_arguments, not_here, refuse_slurm_options
from runyard.cli.splitting import FIT, split, split_size
from runyard.config.standard_input import STANDARD_INPUT
from runyard.errors import ConfigError, UsageError
from runyard.home import locate

if TYPE_CHECKING:
    from runyard.cli.job_log import JobLog
    from runyard.client.sweeps import Sweep
    from runyard.config.task_list import TaskList

_SHOWN = 10
_FEW_SEEDS = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_argument(
        "file", nargs="?", metavar="FILE", help="one command line a line; - for standard input"
    )
    which.completer = complete_file  # type: ignore[attr-defined]
    parser.add_argument(
        "--grid",
        metavar="LINE",
        help="a line with braces instead: {a,b} and {1..5}, as bash has it",
    )
    add_work_arguments(parser)
    # As people have them in scripts with GNU parallel.
    parser.add_argument("--jobs", dest="slots", type=positive, help=argparse.SUPPRESS)
    parser.add_argument(*spelled("--ungroup"), action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--dry-run", action="store_true", help="show the tasks; run nothing")
    parser.add_argument("--no-run", action="store_true", help="make the sweep, and run nothing")
    parser.add_argument("--no-check", action="store_true",
                        help="run lines even if their program does not know an option")  # fmt: skip
    parser.add_argument("--halt", type=halt, metavar="WHEN",
                        help="begin no more when N, or N%%, have failed (soon,fail=N; now,fail=N "
                        "ends what runs as well)")  # fmt: skip
    parser.add_argument("--joblog", metavar="FILE", help="default: sweeps/SWEEP/joblog")
    again = parser.add_mutually_exclusive_group()
    again.add_argument("--resume", action="store_true", help="run what is not in the job log")
    again.add_argument(
        "--resume-failed", action="store_true", help="and what failed according to it"
    )
    parser.add_argument("--split", type=split_size, metavar="N|fit",
                        help="write files of N lines each, and run nothing; fit: of those lines "
                        "whose programs fit a GPU together, as they were gauged")  # fmt: skip
    parser.add_argument("--to", metavar="FOLDER", help="where --split writes (default: tasks)")
    add_slurm_arguments(parser)


def add_work_arguments(parser: argparse.ArgumentParser) -> None:
    """What every command that makes a list has."""
    add_slot_arguments(parser, "programs")
    parser.add_argument("--retries", type=count, metavar="N",
                        help="run one that fails up to N times more")  # fmt: skip
    parser.add_argument("--metric", metavar="NAME", help="what `runyard best` ranks by")
    parser.add_argument("--goal", choices=("minimize", "maximize"), default="minimize",
                        help="whether less or more is better (default: minimize)")  # fmt: skip
    parser.add_argument(*spelled("--name"),
                        help="name of the sweep; on slurm, also of folders and logs")  # fmt: skip
    parser.add_argument(*spelled("--project"), help="project (default: runyard.yaml's, or this "
                        "folder's name)")  # fmt: skip
    parser.add_argument(*spelled("--entity"), help="user or team to whom it belongs")
    parser.add_argument(
        *spelled("--quiet"), action="store_true", help="show progress, not the output"
    )
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")


def run(args: argparse.Namespace) -> int:
    if args.split != FIT:  # It asks for which GPU.
        refuse_slurm_options(args)
    from runyard.config.task_list import read_task_file, tasks_of_grid

    if args.file is None and args.grid is None and _is_redirected():
        args.file = STANDARD_INPUT
    if (args.file is None) == (args.grid is None):
        raise UsageError(
            "runyard farm takes a file of command lines, or --grid with one line",
            mend="runyard farm tasks.txt   or:  runyard farm --grid 'python t.py --lr {0.1,0.01}'",
        )
    found = read_task_file(args.file) if args.grid is None else tasks_of_grid(args.grid)
    if 0 < found.seeds <= _FEW_SEEDS:
        say(f"{found.seeds} seeds tell little about the spread between seeds: five are better")
    if args.split:
        return split(args, found)
    if not args.no_check:
        from runyard.cli.checking import check_tasks

        check_tasks(found, Path.cwd(), refuses=not args.dry_run or args.on == SLURM)
    log = None if args.joblog is None else Path(args.joblog).absolute()
    found = _left(args, found, log)
    if args.on == SLURM:
        not_here(args, "halt", "no-run", "quiet")
        return submit_list(args, found, kind="farm", folder=Path.cwd(), log=log)
    if args.dry_run:
        preview(found, as_json=args.json)
        estimate_list_here(args, found)
        return 0
    if not found.tasks:
        say(f"nothing is left to run: all of it is in {log}")
        return 0
    return start(args, found, log=log, stopping=args.halt, no_run=args.no_run)


def _is_redirected() -> bool:
    """Whether standard input is a file or a pipe: `runyard farm < tasks.txt`."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, OSError, ValueError):
        return False
    return stat.S_ISREG(mode) or stat.S_ISFIFO(mode)


def start(
    args: argparse.Namespace,
    found: TaskList,
    *,
    log: Path | None = None,
    stopping: Any = None,
    no_run: bool = False,
    folder: Path | None = None,
    report: Callable[[Sweep], None] | None = None,
) -> int:
    """Make the sweep of a list, and work on it."""
    from runyard.cli.farm_work import open_log, work_on_list

    opened: JobLog | None = None if log is None or no_run else open_log(log)
    slots = read_slots(args)
    made = make_list(args, found, folder=folder or Path.cwd(), log=log)
    say(f"{_named(made)}: {made['expected']} command lines, {slots}")
    estimate_list_here(args, found, made)
    if no_run:
        say(f"to run it:  runyard sweep {made['id']}")
        if args.json:
            print_json(made)
        return 0
    os.environ.update(agent_variables(project_options(args), folder or Path.cwd(), show))
    code = work_on_list(
        locate(), made, slots=slots, as_json=args.json, quiet=args.quiet, halt=stopping,
        log=opened,
    )  # fmt: skip
    if report is not None:
        report(made)
    return code


def make_list(
    args: argparse.Namespace, found: TaskList, *, folder: Path, log: Path | None = None
) -> Sweep:
    """The sweep of a list."""
    from runyard.config.task_list import sweep_config

    config = sweep_config(
        found,
        "bash" if shutil.which("bash") else "sh",
        retries=args.retries,
        stop_after_failures=0,
        job_log=None if log is None else str(log),
    )
    if args.metric:
        config["metric"] = {"name": args.metric, "goal": args.goal}
    if args.name:
        config["name"] = args.name
    owner = find_owner(project_options(args), folder)
    return server().sweeps.create(
        config,
        project=owner.project,
        entity=owner.entity,
        folder=str(folder),
    )


def submit_list(
    args: argparse.Namespace,
    found: TaskList,
    *,
    kind: str,
    folder: Path,
    log: Path | None = None,
) -> int:
    """Agents for a list, as jobs of the cluster; the list is made when all else is sure."""
    if not found.tasks:
        say("nothing is left to run")
        return 0
    from runyard.cli.estimating import subject_of_list

    submission = plan_submission(
        args, kind=kind, folder=folder, trials=len(found.tasks), slots=args.slots or 1,
        subject=lambda request: subject_of_list(
            found, request.gauge.by, find_owner(project_options(args), folder)
        ),
        command_line=next(iter(found.tasks.values())).command_line if kind == "run" else None,
    )  # fmt: skip
    if args.dry_run:
        submission.preview()
        return 0
    confirmed = submission.confirmed(args)
    if confirmed is None:
        return nothing_was_submitted()
    made = make_list(args, found, folder=folder, log=log)
    many = "one command" if made["expected"] == 1 else f"{made['expected']} command lines"
    say(f"{_named(made)}: {many}")
    return send_or_undo(confirmed, made, as_json=args.json)


def estimate_list_here(
    args: argparse.Namespace, found: TaskList, made: Sweep | None = None
) -> None:
    from runyard.cli.estimating import estimate_here, options_of_kind, subject_of_list

    if found.tasks:
        folder = Path.cwd()
        by = options_of_kind(folder)
        owner = find_owner(project_options(args), folder)
        subject = subject_of_list(found, by, owner)
        estimate_here(subject, len(found.tasks), args.slots, made)


def _named(made: Sweep) -> str:
    return f"sweep {made['id']}{'' if made['name'] == made['id'] else ' (' + made['name'] + ')'}"


def preview(found: TaskList, *, as_json: bool) -> None:
    if as_json:
        print_json([{"number": number, **one.to_json()} for number, one in found.tasks.items()])
        return
    out = console()
    out.print(f"{found.source}: {len(found.tasks)} command lines", style="bold", soft_wrap=True)
    shown = list(found.tasks.items())[:_SHOWN]
    width = max((len(task.name) for _, task in shown), default=0)
    for number, task in shown:
        out.print(f"  {number:>4}  {task.name:<{width}}  {task.command_line}", soft_wrap=True)
    if len(found.tasks) > len(shown):
        out.print(f"  ... and {len(found.tasks) - len(shown)} more")
    out.print("\nnothing was made; without --dry-run it begins", soft_wrap=True)


def _left(args: argparse.Namespace, found: TaskList, log: Path | None) -> TaskList:
    """The tasks that are to run, by what the job log says."""
    from runyard.cli.job_log import read_job_log, refuse_used_log

    if not (args.resume or args.resume_failed):
        if log is not None and (not args.dry_run or args.on == SLURM):
            refuse_used_log(log)
        return found
    if log is None:
        raise UsageError(
            "--resume and --resume-failed need to know the job log",
            mend="--joblog FILE names it; `runyard retry SWEEP` does without",
        )
    rows = read_job_log(log)
    for number, row in rows.items():
        task = found.tasks.get(number)
        if task is None or task.command_line != row.command_line.strip():
            there = f"has {task.command_line!r} there" if task else "has no such line"
            raise ConfigError(
                f"{log} is about something else: its task {number} is {row.command_line!r}, and "
                f"{found.source} {there}",
                mend="lines may be added at the end; else begin a new log with --joblog FILE",
            )
    done = {n for n, row in rows.items() if row.is_good or not args.resume_failed}
    return found.only([number for number in found.tasks if number not in done])
