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
import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from runyard.actions.sweeping import task_lists
from runyard.actions.sweeping.halting import read_halt_rule
from runyard.actions.sweeping.job_log import open_log
from runyard.cli.completers import complete_file
from runyard.cli.option_groups import (
    add_result_arguments,
    add_slot_arguments,
    add_warm_argument,
    project_options,
    read_slots,
)
from runyard.cli.output import console, print_json, say, show
from runyard.cli.parser import add, flag, positive, typed
from runyard.cli.slurm_options import add_slurm_arguments, not_here, refuse_slurm_options
from runyard.schedulers.choice import has_queue

if TYPE_CHECKING:
    from runyard.config.task_list import TaskList
    from runyard.shapes.sweeps import Sweep

_SHOWN = 10
_FIT = "fit"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "runyard farm [options] [FILE]"
    add(parser, "file FILE", "one command line a line; - for standard input",
        nargs="?", completer=complete_file)  # fmt: skip
    add(parser, "--grid LINE", "a line with braces instead: {a,b} and {1..5}, as bash has it")
    add_work_arguments(parser)
    # As people have them in scripts with GNU parallel.
    add(parser, "--jobs", argparse.SUPPRESS, dest="slots", type=positive)
    flag(parser, "-u --ungroup", argparse.SUPPRESS)
    flag(parser, "--dry-run", "show the tasks; run nothing")
    flag(parser, "--no-run", "make the sweep, and run nothing")
    flag(parser, "--no-check", "run lines even if their program does not know an option")
    add(parser, "--halt WHEN", "begin no more when N, or N%%, have failed (soon,fail=N; now,fail=N "
        "ends what runs as well)", type=typed(read_halt_rule))  # fmt: skip
    add(parser, "--joblog FILE", "default: sweeps/SWEEP/joblog")
    again = parser.add_mutually_exclusive_group()
    flag(again, "--resume", "run what is not in the job log")
    flag(again, "--resume-failed", "and what failed according to it")
    add(parser, "--split N|fit", "write files of N lines each, and run nothing; fit: of those "
        "lines whose programs fit a GPU together, as they were gauged",
        type=_split_size)  # fmt: skip
    add(parser, "--to FOLDER", "where --split writes (default: tasks)")
    add_slurm_arguments(parser)


def add_work_arguments(parser: argparse.ArgumentParser) -> None:
    """What every command that makes a list has."""
    add_slot_arguments(parser, "programs")
    add_warm_argument(parser)
    add_result_arguments(parser)
    add(parser, "-e --name", "name of the sweep; on slurm, also of folders and logs")
    add(parser, "-P --project", "project (default: runyard.yaml's, or this folder's name)")
    add(parser, "-E --entity", "user or team to whom it belongs")
    flag(parser, "-q --quiet", "show progress, not the output")
    flag(parser, "--json", "print the outcome as JSON")


def run(args: argparse.Namespace) -> int:
    if args.split != _FIT:  # It asks for which GPU.
        refuse_slurm_options(args)
    tasks = task_lists.read_tasks(args.file, args.grid, show)
    if args.split:
        return _split(args, tasks)
    if not args.no_check:
        from runyard.actions.trying.program_checks import check_tasks

        check_tasks(tasks, Path.cwd(), show, refuses=not args.dry_run or has_queue(args.on))
    log = None if args.joblog is None else Path(args.joblog).absolute()
    writes = not args.dry_run or has_queue(args.on)
    left = task_lists.tasks_left(
        tasks, log, resumes=args.resume, failed_too=args.resume_failed, writes=writes
    )
    if has_queue(args.on):
        not_here(args, "halt no-run quiet")
    if not left.tasks and writes:
        say(f"nothing is left to run: all of it is in {log}")
        return 0
    return launch(args, list_request(args, left, log), "farm")


def _split(args: argparse.Namespace, tasks: TaskList) -> int:
    from runyard.actions.sweeping.splitting import SplitRequest, split_tasks

    most = args.per_gpu if isinstance(args.per_gpu, int) else None
    size = None if args.split == _FIT else args.split
    request = SplitRequest(tasks, Path(args.to or "tasks"), size, most, project_options(args))
    files = split_tasks(request, show)
    if args.json:
        print_json([str(file.path) for file in files])
        return 0
    first, last = files[0].path, files[-1].path.name
    say(f"{len(tasks.tasks)} command lines in {len(files)} files: {first} to {last}")
    if size is not None:
        say(f"each runs with:  runyard farm {first} -j {size}")
        return 0
    for file in files:
        say(f"{file.memory}:  runyard farm {shlex.quote(str(file.path))} --per-gpu {file.lines}")
    return 0


def _split_size(text: str) -> int | str:
    return text if text == _FIT else positive(text)


def list_request(
    args: argparse.Namespace, tasks: TaskList, log: Path | None = None
) -> task_lists.ListRequest:
    """With the options of `add_work_arguments`."""
    return task_lists.ListRequest(
        tasks, Path.cwd(), project_options(args), read_slots(args), args.name, args.retries,
        args.metric, args.goal, log, args.warm or (),
    )  # fmt: skip


def launch(
    args: argparse.Namespace,
    request: task_lists.ListRequest,
    kind: str,
    report: Callable[[Sweep], None] | None = None,
) -> int:
    """Submit a list, show it, or make its sweep and work on it here."""
    if has_queue(args.on):
        from runyard.cli.starting.submission_view import send

        return send(args, partial(task_lists.submit_list, request, kind))
    if args.dry_run:
        preview(request.tasks, as_json=args.json)
        task_lists.estimate_list(request, show)
        return 0
    from runyard.actions.sweeping.work import WorkRequest
    from runyard.cli.starting.working import work_on

    no_run = getattr(args, "no_run", False)
    log = None if request.log is None or no_run else open_log(request.log)
    sweep = task_lists.begin_list(request, show)
    if no_run:
        say(f"to run it:  runyard sweep {sweep['id']}")
        if args.json:
            print_json(sweep)
        return 0
    halt = getattr(args, "halt", None)
    wanted = WorkRequest(sweep, request.options, request.slots, halt=halt, log=log)
    code = work_on(wanted, as_json=args.json, quiet=args.quiet)
    if report is not None and not args.json:
        report(sweep)
    return code


def preview(tasks: TaskList, *, as_json: bool) -> None:
    if as_json:
        print_json([{"number": number, **task.to_json()} for number, task in tasks.tasks.items()])
        return
    out = console()
    out.print(f"{tasks.source}: {len(tasks.tasks)} command lines", style="bold", soft_wrap=True)
    shown = list(tasks.tasks.items())[:_SHOWN]
    width = max((len(task.name) for _, task in shown), default=0)
    for number, task in shown:
        out.print(f"  {number:>4}  {task.name:<{width}}  {task.command_line}", soft_wrap=True)
    if len(tasks.tasks) > len(shown):
        out.print(f"  ... and {len(tasks.tasks) - len(shown)} more")
    out.print("\nnothing was made; without --dry-run it begins", soft_wrap=True)
