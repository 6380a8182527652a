"""Write runs as a table: every row they logged, or one row a run.

  runyard export -P spirals -o runs.csv
  runyard export a1b2c3d4 --metric loss --metric accuracy | column -ts,
  runyard export --what summary -o runs.parquet      (needs `runyard[export]`)
  runyard export a1b2c3d4 --archived                 what was overwritten or rewound

Without -o it goes to the terminal as CSV. RUN is an id, the beginning of one, or a name; without
one, all runs.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from runyard.actions.results.export import ExportRequest, export
from runyard.cli.completers import complete_run
from runyard.cli.connect import server
from runyard.cli.letters import spelled
from runyard.cli.output import say
from runyard.cli.streams import unfiltered
from runyard.report.export import FORMATS, WHAT


def add_arguments(parser: argparse.ArgumentParser) -> None:
    runs = parser.add_argument("run", nargs="*", metavar="RUN", help="which runs (default: all)")
    runs.completer = complete_run  # type: ignore[attr-defined]
    parser.add_argument(*spelled("--project"), help="only this project's (NAME or ENTITY/NAME)")
    parser.add_argument("--what", choices=WHAT, default="history",
                        help="history (default), system, or summary: one row a run")  # fmt: skip
    parser.add_argument("--metric", action="append", default=[],
                        help="only this metric; may be repeated")  # fmt: skip
    parser.add_argument("--archived", action="store_true",
                        help="what was overwritten, by using an id again, or rewound")  # fmt: skip
    parser.add_argument(*spelled("--output"), type=Path, help="file (default: standard output)")
    parser.add_argument("--format", choices=FORMATS, help="default: by the file's name, or csv")


def run(args: argparse.Namespace) -> int:
    request = ExportRequest(
        tuple(args.run), args.project, args.what, tuple(args.metric), archived=args.archived,
        output=args.output, format=args.format,
    )  # fmt: skip
    exported = export(server, request, unfiltered(sys.stdout))
    if args.output is not None:
        say(f"{exported.rows} rows of {exported.runs} runs in {args.output}")
    return 0
