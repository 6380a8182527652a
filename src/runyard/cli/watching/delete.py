"""Delete runs: they stay in the trash for 30 days, and can be restored.

  runyard delete a1b2c3d4              asks first, on a terminal
  runyard delete a1b2c3d4 b2c3d4e5 -y  asks nothing
  runyard delete --trash               what lies in the trash, and until when
  runyard delete --restore a1b2c3d4    puts a run back where it was
  runyard delete --now a1b2c3d4        deletes for good, at once
  runyard delete --empty               deletes all that is in the trash, for good

A client that still writes to a deleted run is told to stop sending. RUN is an id, the beginning of
one, a name, or PROJECT/any of these. Artifacts that it logged stay, unless --artifacts is given;
those go at once. A restored trial is listed with its sweep again; the search does not count it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import Any

from runyard.actions.ending.delete import delete_runs, empty_trash, restore_runs
from runyard.cli.completers import complete_run
from runyard.cli.connect import server
from runyard.cli.output import Columns, ago, duration, print_json, print_list, say, size
from runyard.cli.parser import add, flag
from runyard.cli.questions import ask_sure
from runyard.errors import UsageError
from runyard.shapes.runs import RunDetail, TrashedRun

_TRASH: Columns = {
    "ID": "id",
    "NAME": "name",
    "PROJECT": "project",
    "DELETED": lambda run: ago(run["deleted_at"]),
    "BY": "deleted_by",
    "GONE IN": lambda run: duration(max(0.0, run["gone_at"] - time.time())),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add(parser, "runs RUN", "which runs", nargs="*", completer=complete_run)
    what = parser.add_mutually_exclusive_group()
    flag(what, "--trash", "list what is in the trash")
    flag(what, "--restore", "put runs of the trash back")
    flag(what, "--empty", "delete all that is in the trash")
    flag(what, "--now", "delete for good, without the trash")
    flag(parser, "--artifacts", "delete the artifacts too that no other run has logged")
    flag(parser, "-y --yes", "do not ask")
    flag(parser, "--json", "print what was changed as JSON")


def run(args: argparse.Namespace) -> int:
    if args.trash or args.empty:
        if args.runs:
            raise UsageError("--trash and --empty take no runs", mend="runyard delete --trash")
        if args.empty:
            return _empty(args)
        print_list(_TRASH, server().trash.runs(), "the trash is empty", as_json=args.json)
        return 0
    if not args.runs:
        raise UsageError("which runs?", mend="`runyard runs` lists them")
    return _restore(args) if args.restore else _delete(args)


def _delete(args: argparse.Namespace) -> int:
    def confirm(runs: list[RunDetail]) -> bool:
        return args.yes or _ask([describe(run) for run in runs], for_good=args.now)

    choice: Any = {"with_artifacts": args.artifacts, "now": args.now}
    deleted = []
    for run in delete_runs(server(), args.runs, confirm, **choice):
        deleted.append(run)
        if not args.json:
            say(f"deleted {describe(run)}")
    if not deleted:
        say("nothing was deleted")
    elif args.json:
        _print(deleted)
    elif not args.now:
        say(f"in the trash for 30 days: runyard delete --restore {deleted[0]['id']}")
    return 0 if deleted else 1


def _restore(args: argparse.Namespace) -> int:
    runs = restore_runs(server(), args.runs)
    if args.json:
        _print(runs)
    else:
        for run in runs:
            say(f"restored {_name(run)}")
    return 0


def _empty(args: argparse.Namespace) -> int:
    def confirm(runs: list[TrashedRun]) -> bool:
        return args.yes or _ask([_name(run) for run in runs], for_good=True)

    runs = empty_trash(server(), confirm)
    if args.json:
        _print(runs)
    else:
        say(f"deleted {len(runs)} runs for good" if runs else "nothing was deleted")
    return 0


def _print(runs: Sequence[TrashedRun | RunDetail]) -> None:
    print_json([{"id": run["id"], "name": run["name"], "project": run["project"]} for run in runs])


def _name(run: TrashedRun) -> str:
    return f"{run['project']}/{run['id']} ({run['name']})"


def describe(run: RunDetail) -> str:
    """What goes with a run, in one line."""
    files = f"{len(run['files'])} files ({size(run['file_bytes'])})"
    named = f"{run['project']}/{run['id']} ({run['name']}, {run['state']})"
    return f"{named}: {run['steps']} steps, {files}"


def _ask(lines: Sequence[str], *, for_good: bool) -> bool:
    for line in lines:
        print(line, file=sys.stderr)
    if not sys.stdin.isatty():
        raise UsageError(
            "runyard delete asks before it deletes, and there is no terminal to ask on",
            mend="add --yes if you are sure",
        )
    what = "this run" if len(lines) == 1 else f"these {len(lines)} runs"
    return ask_sure(f"delete {what} for good?" if for_good else f"put {what} into the trash?")
