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
import re
import shlex
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from runyard.actions.sweeping.halting import HaltRule
from runyard.actions.sweeping.job_log import open_log, refuse_used_log
from runyard.actions.sweeping.task_lists import (
    ListRequest,
    begin_list,
    estimate_list,
    left_by_log,
    submit_list,
)
from runyard.cli.completers import complete_file
from runyard.cli.letters import spelled
from runyard.cli.output import console, print_json, say, show
from runyard.cli.parser import count, positive
from runyard.cli.project_options import project_options
from runyard.cli.slurm_options import add_slurm_arguments, not_here, refuse_slurm_options
from runyard.cli.starting.slots import add_slot_arguments, read_slots
from runyard.config.standard_input import STANDARD_INPUT
from runyard.errors import UsageError
from runyard.schedulers.choice import has_queue

if TYPE_CHECKING:
    from runyard.client.sweeps import Sweep
    from runyard.config.task_list import TaskList

_SHOWN = 10
_FEW_SEEDS = 3
_FIT = "fit"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "runyard farm [options] [FILE]"
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
    parser.add_argument("--halt", type=halt_rule, metavar="WHEN",
                        help="begin no more when N, or N%%, have failed (soon,fail=N; now,fail=N "
                        "ends what runs as well)")  # fmt: skip
    parser.add_argument("--joblog", metavar="FILE", help="default: sweeps/SWEEP/joblog")
    again = parser.add_mutually_exclusive_group()
    again.add_argument("--resume", action="store_true", help="run what is not in the job log")
    again.add_argument(
        "--resume-failed", action="store_true", help="and what failed according to it"
    )
    parser.add_argument("--split", type=_split_size, metavar="N|fit",
                        help="write files of N lines each, and run nothing; fit: of those lines "
                        "whose programs fit a GPU together, as they were gauged")  # fmt: skip
    parser.add_argument("--to", metavar="FOLDER", help="where --split writes (default: tasks)")
    add_slurm_arguments(parser)


def add_work_arguments(parser: argparse.ArgumentParser) -> None:
    """What every command that makes a list has."""
    add_slot_arguments(parser, "programs")
    parser.add_argument("--retries", type=count, metavar="N",
                        help="run one that fails up to N times more")  # fmt: skip
    parser.add_argument("--metric", metavar="NAME", help="what `runyard show --best` ranks by")
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
    if args.split != _FIT:  # It asks for which GPU.
        refuse_slurm_options(args)
    from runyard.config.task_list import read_task_file, tasks_of_grid

    if args.file is None and args.grid is None and _is_redirected():
        args.file = STANDARD_INPUT
    if (args.file is None) == (args.grid is None):
        raise UsageError(
            "runyard farm takes a file of command lines, or --grid with one line",
            mend="runyard farm tasks.txt   or:  runyard farm --grid 'python t.py --lr {0.1,0.01}'",
        )
    tasks = read_task_file(args.file) if args.grid is None else tasks_of_grid(args.grid)
    if 0 < tasks.seeds <= _FEW_SEEDS:
        say(f"{tasks.seeds} seeds tell little about the spread between seeds: five are better")
    if args.split:
        return _split(args, tasks)
    if not args.no_check:
        from runyard.actions.trying.program_checks import check_tasks

        check_tasks(tasks, Path.cwd(), show, refuses=not args.dry_run or has_queue(args.on))
    log = None if args.joblog is None else Path(args.joblog).absolute()
    request = list_request(args, _left(args, tasks, log), folder=Path.cwd(), log=log)
    if has_queue(args.on):
        not_here(args, "halt", "no-run", "quiet")
        return _submit(args, request)
    if args.dry_run:
        preview(request.tasks, as_json=args.json)
        estimate_list(request, show)
        return 0
    if not request.tasks.tasks:
        say(f"nothing is left to run: all of it is in {log}")
        return 0
    return start(request, as_json=args.json, quiet=args.quiet, halt=args.halt, no_run=args.no_run)


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
        path = shlex.quote(str(file.path))
        say(f"{file.memory}:  runyard farm {path} --per-gpu {file.lines}")
    return 0


def _split_size(text: str) -> int | str:
    return text if text == _FIT else positive(text)


def _is_redirected() -> bool:
    """Whether standard input is a file or a pipe: `runyard farm < tasks.txt`."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, OSError, ValueError):
        return False
    return stat.S_ISREG(mode) or stat.S_ISFIFO(mode)


def list_request(
    args: argparse.Namespace, tasks: TaskList, *, folder: Path, log: Path | None = None
) -> ListRequest:
    """With the options of `add_work_arguments`."""
    return ListRequest(
        tasks,
        folder,
        project_options(args),
        read_slots(args),
        args.name,
        args.retries,
        args.metric,
        args.goal,
        log,
    )


def _submit(args: argparse.Namespace, request: ListRequest) -> int:
    from runyard.cli.starting.submission_view import cluster_options, show_submission, tell_outcome

    if not request.tasks.tasks:
        say("nothing is left to run")
        return 0
    outcome = submit_list(request, "farm", cluster_options(args), show_submission)
    return tell_outcome(outcome, as_json=args.json)


def start(
    request: ListRequest,
    *,
    as_json: bool,
    quiet: bool,
    halt: HaltRule | None = None,
    no_run: bool = False,
    report: Callable[[Sweep], None] | None = None,
) -> int:
    """Make the sweep of a list, and work on it."""
    from runyard.actions.sweeping.work import WorkRequest
    from runyard.cli.starting.working import work_on

    log = None if request.log is None or no_run else open_log(request.log)
    sweep = begin_list(request, show)
    if no_run:
        say(f"to run it:  runyard sweep {sweep['id']}")
        if as_json:
            print_json(sweep)
        return 0
    wanted = WorkRequest(sweep, request.options, request.slots, halt=halt, log=log)
    code = work_on(wanted, as_json=as_json, quiet=quiet)
    if report is not None:
        report(sweep)
    return code


def halt_rule(text: str) -> HaltRule | None:
    """For `type=`: never, 3, 10%, soon,fail=3 or now,fail=1."""
    if text == "never":
        return None
    words = re.fullmatch(r"(?:(now|soon),fail=)?([1-9]\d*)(%?)", text)
    if words is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not never, N, N%, soon,fail=N or now,fail=N")
    return HaltRule(words[1] == "now", int(words[2]), bool(words[3]))


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


def _left(args: argparse.Namespace, tasks: TaskList, log: Path | None) -> TaskList:
    """The tasks that are to run, by what the job log says."""
    if not (args.resume or args.resume_failed):
        if log is not None and (not args.dry_run or has_queue(args.on)):
            refuse_used_log(log)
        return tasks
    if log is None:
        raise UsageError(
            "--resume and --resume-failed need to know the job log",
            mend="--joblog FILE names it; `runyard retry SWEEP` does without",
        )
    return left_by_log(tasks, log, failed_too=args.resume_failed)
