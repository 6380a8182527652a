"""Delete runs for good: config, summary, history, console and files.

  runyard delete a1b2c3d4              asks first, on a terminal
  runyard delete a1b2c3d4 b2c3d4e5 -y  asks nothing

A client that still writes to a deleted run is told to stop sending. RUN is an id, the beginning of
one, a name, or PROJECT/any of these. Artifacts that it logged stay, unless --artifacts is given.
"""

from __future__ import annotations

import argparse
import sys

from runyard.actions.ending.delete import delete_runs
from runyard.cli.completers import complete_run
from runyard.cli.connect import server
from runyard.cli.letters import spelled
from runyard.cli.output import print_json, say, size
from runyard.cli.questions import ask_sure
from runyard.client.api import RunDetail
from runyard.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    argument = parser.add_argument("runs", nargs="+", metavar="RUN", help="which runs")
    argument.completer = complete_run  # type: ignore[attr-defined]
    parser.add_argument(
        "--artifacts",
        action="store_true",
        help="delete the artifacts too that no other run has logged",
    )
    parser.add_argument(*spelled("--yes"), action="store_true", help="do not ask")
    parser.add_argument("--json", action="store_true", help="print what was deleted as JSON")


def run(args: argparse.Namespace) -> int:
    def confirm(runs: list[RunDetail]) -> bool:
        return args.yes or _ask(runs)

    deleted = []
    for run in delete_runs(server(), args.runs, confirm, with_artifacts=args.artifacts):
        deleted.append({key: run[key] for key in ("id", "name", "project")})
        if not args.json:
            say(f"deleted {describe(run)}")
    if not deleted:
        say("nothing was deleted")
    elif args.json:
        print_json(deleted)
    return 0 if deleted else 1


def describe(run: RunDetail) -> str:
    """What goes with a run, in one line."""
    files = f"{len(run['files'])} files ({size(run['file_bytes'])})"
    return (
        f"{run['project']}/{run['id']} ({run['name']}, {run['state']}): "
        f"{run['steps']} steps, {files}"
    )


def _ask(runs: list[RunDetail]) -> bool:
    for run in runs:
        print(describe(run), file=sys.stderr)
    if not sys.stdin.isatty():
        raise UsageError(
            "runyard delete asks before it deletes, and there is no terminal to ask on",
            mend="add --yes if you are sure",
        )
    what = "this run" if len(runs) == 1 else f"these {len(runs)} runs"
    return ask_sure(f"delete {what} for good?")
