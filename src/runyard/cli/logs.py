"""Print what a run printed, all trials of a sweep, or a job, each line marked with its source.

  runyard logs              the newest run
  runyard logs TRIAL -f     a run by id or name, until it ends
  runyard logs SWEEP        all its trials, each line marked with its trial
  runyard logs 4021 -f      a job: the logs of all its tasks, each line marked with its task
  runyard logs 4021_7       one task of it

It works when the job is long gone: the files stay, and the server keeps what trials printed.
"""

from __future__ import annotations

import argparse
import time

from runyard.actions import naming
from runyard.actions.naming import find_run
from runyard.cli.completers import NAMED, complete_named
from runyard.cli.connect import server
from runyard.cli.letters import spelled
from runyard.cli.parser import count
from runyard.cli.streams import print_console
from runyard.client.api import Api, Console, RunDetail
from runyard.errors import NotFoundError, ServerError

_WAIT_SECONDS = 20.0
_PAUSES = (0.1, 1.0, 3.0)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_argument(
        "what", nargs="?", metavar=NAMED, help="which one (default: the newest run)"
    )
    which.completer = complete_named  # type: ignore[attr-defined]
    parser.add_argument(*spelled("--follow"), action="store_true", help="go on until it ends")
    parser.add_argument(
        *spelled("--lines"), type=count, help="only the last so many lines, then go on"
    )
    parser.add_argument(
        "--raw", action="store_true", help="others' output too with all that a terminal obeys"
    )
    parser.add_argument("--trials", action="store_true",
                        help="of a job: what its trials printed, instead of its log")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    api = server()
    if args.what is None:
        return _print_run(api, find_run(api, None), args)
    found = naming.find(api, args.what)
    if found.run is not None:
        return _print_run(api, found.run, args)
    if found.sweep is not None:
        from runyard.cli.sweep_logs import print_sweep_logs

        raw = args.raw or is_own(api, found.sweep["entity"])
        return print_sweep_logs(api, found.sweep, follow=args.follow, lines=args.lines, raw=raw)
    if found.job is None:
        raise NotFoundError(
            f"runyard has submitted no job {found.number}, and does not know its log",
            mend=f"`scontrol show job {found.number}` names its StdOut while Slurm knows it",
        )
    from runyard.cli.job_logs import print_job_logs

    return print_job_logs(
        api,
        found.job,
        found.task,
        follow=args.follow,
        lines=args.lines,
        trials=args.trials,
    )


def _print_run(api: Api, found: RunDetail, args: argparse.Namespace) -> int:
    after = 0
    held = ""
    raw = args.raw or is_own(api, found["entity"])
    while True:
        page = api.console(found, after)
        if page["next"] == after:
            break
        after = page["next"]
        if args.lines is None:
            print_console(page["text"], raw=raw)
        else:
            held = last_lines(held + page["text"], args.lines)
    print_console(held, raw=raw)
    while args.follow and not page["ended"]:
        api, page = _next_page(api, found, after)
        after = page["next"]
        print_console(page["text"], raw=raw)
    return 0


def is_own(api: Api, entity: str) -> bool:
    """Whether only the caller writes there: what others' programs print stays plain text."""
    return api.people.me()["name"] == entity


def last_lines(text: str, number: int) -> str:
    """As `tail` has it: a progress bar, which draws over itself, is one line."""
    lines = text.split("\n")
    unfinished = 1 if lines[-1] else 0
    return "\n".join(lines[max(0, len(lines) - 1 + unfinished - number) :]) if number else ""


def _next_page(api: Api, found: RunDetail, after: int) -> tuple[Api, Console]:
    # The server may be restarted, or die, while we wait: the run goes on, and so do we.
    for pause in _PAUSES:
        try:
            return api, api.console(found, after, wait=_WAIT_SECONDS)
        except ServerError:
            time.sleep(pause)
            api = server()
    return api, api.console(found, after)
