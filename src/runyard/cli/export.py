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

from runyard.actions.naming import find_run
from runyard.cli.completers import complete_run
from runyard.cli.connect import server
from runyard.cli.letters import spelled
from runyard.cli.output import say
from runyard.cli.streams import unfiltered
from runyard.client.api import Api, Run
from runyard.errors import NotFoundError, UsageError
from runyard.report.export import FORMATS, WHAT, select_rows, write_table


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
    form = args.format or _form_of(args.output)
    api = server()
    chosen = _choose(api, args.run, args.project)
    rows = select_rows(api, chosen, args.what, args.metric, archived=args.archived)
    count = write_table(rows, args.output or unfiltered(sys.stdout), form)
    if args.output is not None:
        say(f"{count} rows of {len(chosen)} runs in {args.output}")
    return 0


def _choose(api: Api, words: list[str], project: str | None) -> list[Run]:
    if words:
        return [find_run(api, word) for word in words]
    found = api.runs(project=project)
    if not found:
        where = f" in project {project}" if project else ""
        raise NotFoundError(f"there are no runs{where}", mend="`runyard runs` lists them")
    return found


def _form_of(path: Path | None) -> str:
    if path is None:
        return "csv"
    form = {"json": "jsonl", "ndjson": "jsonl"}.get(path.suffix[1:], path.suffix[1:])
    if form not in FORMATS:
        raise UsageError(
            f"{path.name} does not say which format it is",
            mend=f"end its name in .csv, .jsonl or .parquet, or give --format {'|'.join(FORMATS)}",
        )
    return form
