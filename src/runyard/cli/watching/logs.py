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

from runyard.actions.watching.log_events import LogLines, LogsRequest, LogText
from runyard.actions.watching.logs import read_logs
from runyard.cli.completers import NAMED, complete_named
from runyard.cli.connect import server
from runyard.cli.output import show
from runyard.cli.parser import add, count, flag
from runyard.cli.streams import print_console, print_marked


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add(parser, "what", "which one (default: the newest run)",
        nargs="?", metavar=NAMED, completer=complete_named)  # fmt: skip
    flag(parser, "-f --follow", "go on until it ends")
    add(parser, "-l --lines", "only the last so many lines, then go on", type=count)
    flag(parser, "--raw", "others' output too with all that a terminal obeys")
    flag(parser, "--trials", "of a job: what its trials printed, instead of its log")


def run(args: argparse.Namespace) -> int:
    request = LogsRequest(args.what, follow=args.follow, lines=args.lines, trials=args.trials)
    for event in read_logs(request, server(), server):
        if isinstance(event, LogText):
            print_console(event.text, raw=args.raw or event.is_own)
        elif isinstance(event, LogLines):
            print_marked(event.source, event.lines, raw=args.raw or event.is_own)
        else:
            show(event)
    return 0
