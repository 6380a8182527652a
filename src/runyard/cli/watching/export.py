"""Write runs as a table: every row they logged, or one row a run.

  runyard export -P spirals -o runs.csv
  runyard export a1b2c3d4 --metric loss --metric accuracy | column -ts,
  runyard export --what summary -o runs.parquet      (needs `runyard[export]`)
  runyard export a1b2c3d4 --archived                 what was overwritten or rewound

Without -o it goes to the terminal as CSV. RUN is an id, the beginning of one, or a name; without
one, all runs. In CSV, text that a spreadsheet would run as a formula gets a ' before it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from runyard.actions.results.export import ExportRequest, export
from runyard.cli.completers import complete_run
from runyard.cli.connect import server
from runyard.cli.output import say
from runyard.cli.parser import add, flag
from runyard.cli.streams import unfiltered
from runyard.report.export import FORMATS, WHAT


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add(parser, "run RUN", "which runs (default: all)", nargs="*", completer=complete_run)
    add(parser, "-P --project", "only this project's (NAME or ENTITY/NAME)")
    add(parser, "--what", "history (default), system, or summary: one row a run",
        choices=WHAT, default="history")  # fmt: skip
    add(parser, "--metric", "only this metric; may be repeated", action="append", default=[])
    flag(parser, "--archived", "what was overwritten, by using an id again, or rewound")
    add(parser, "-o --output", "file (default: standard output)", type=Path)
    add(parser, "--format", "default: by the file's name, or csv", choices=FORMATS)


def run(args: argparse.Namespace) -> int:
    request = ExportRequest(
        tuple(args.run), args.project, args.what, tuple(args.metric), archived=args.archived,
        output=args.output, format=args.format,
    )  # fmt: skip
    table = export(server, request, sys.stdout if sys.stdout.isatty() else unfiltered(sys.stdout))
    if args.output is not None:
        say(f"{table.rows} rows of {table.runs} runs in {args.output}")
    return 0
