"""Delete runs for good: config, summary, history, console and files.

  runyard delete a1b2c3d4              asks first, on a terminal
  runyard delete a1b2c3d4 b2c3d4e5 -y  asks nothing

A client that still writes to a deleted run is told to stop sending. RUN is an id, the beginning of
one, a name, or PROJECT/any of these. Artifacts that it logged stay, unless --artifacts is given.
"""

from __future__ import annotations

import argparse
import sys

from runyard.actions.naming import find_run
from runyard.cli.completers import complete_run
from runyard.cli.connect import server
from runyard.cli.letters import spelled
from runyard.cli.output import print_json, say, size
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
    api = server()
    # All are found before any is deleted: a word that means no run changes nothing.
    found = {one["key"]: one for one in (find_run(api, words) for words in args.runs)}
    if not args.yes:
        for one in found.values():
            print(describe(one), file=sys.stderr)
        if not _confirmed(len(found)):
            say("nothing was deleted")
            return 1
    for one in found.values():
        api.delete_run(one, with_artifacts=args.artifacts)
        if not args.json:
            say(f"deleted {describe(one)}")
    if args.json:
        print_json([{key: one[key] for key in ("id", "name", "project")} for one in found.values()])
    return 0


def describe(one: RunDetail) -> str:
    """What goes with a run, in one line."""
    files = f"{len(one['files'])} files ({size(one['file_bytes'])})"
    return (
        f"{one['project']}/{one['id']} ({one['name']}, {one['state']}): "
        f"{one['steps']} steps, {files}"
    )


def _confirmed(count: int) -> bool:
    if not sys.stdin.isatty():
        raise UsageError(
            "runyard delete asks before it deletes, and there is no terminal to ask on",
            mend="add --yes if you are sure",
        )
    what = "this run" if count == 1 else f"these {count} runs"
    print(f"delete {what} for good? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
