"""Run a trial or a run once more: the same command and values, as a new run.

  runyard rerun a1b2c3d4             here, in the folder in which it ran
  runyard rerun a1b2c3d4 --dry-run   what would run, and where

RUN is an id, the beginning of one, a name, or PROJECT/any of these. It runs here, in the folder in
which it ran; what it was is left as it is.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from runyard.actions.rerun import once_more
from runyard.cli.completers import complete_run
from runyard.cli.connect import server
from runyard.cli.starting.farm import add_work_arguments, list_request, preview, start


def add_arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_argument("run", metavar="RUN", help="which run, or trial of a sweep")
    which.completer = complete_run  # type: ignore[attr-defined]
    add_work_arguments(parser)
    parser.add_argument("--dry-run", action="store_true", help="show the command; run nothing")


def run(args: argparse.Namespace) -> int:
    again = once_more(server(), args.run)
    if args.dry_run:
        preview(again.tasks, as_json=args.json)
        return 0
    request = list_request(args, again.tasks, folder=again.folder)
    options = replace(
        request.options,
        project=request.options.project or again.run["project"],
        entity=request.options.entity or again.run["entity"],
    )
    return start(replace(request, options=options), as_json=args.json, quiet=args.quiet)
