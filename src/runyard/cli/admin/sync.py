"""Bring in runs that were recorded without the server.

  runyard sync               every run of the state folder that is owed
  runyard sync RUN ...       these: by id, or folders that a wandb client wrote

Where a node cannot reach the server, `runyard run` lets wandb record on disk. That is brought in at
the job's end if the server can be reached then, by the next command that starts the server, or by
this one. What is in is marked and not sent again; sending it twice would do no harm.
"""

from __future__ import annotations

import argparse

from runyard.actions.tidying.sync import Synced, sync
from runyard.cli.connect import server
from runyard.cli.letters import spelled
from runyard.cli.output import print_json
from runyard.client.api import Api
from runyard.home import locate


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="*", metavar="RUN", help="a run's id, or a wandb folder")
    parser.add_argument("--all", action="store_true", help="every run that is owed (the default)")
    parser.add_argument("--again", action="store_true", help="also what was brought in before")
    parser.add_argument(*spelled("--quiet"), action="store_true", help="print only what goes wrong")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    def connect() -> Api:
        return server(home, sync=False)

    home, results = locate(), []
    for result in sync(home, args.runs, connect, again=args.again):
        results.append(result)
        if not args.json and (not args.quiet or result.state == "failed"):
            print(_words(result), flush=True)
    if args.json:
        said = [{"said": result.said} if result.said else {} for result in results]
        print_json(
            [
                {"run": result.run, "folder": str(result.folder), "state": result.state, **more}
                for result, more in zip(results, said, strict=True)
            ]
        )
    elif not results and not args.quiet:
        print("nothing to bring in")
    return 1 if any(result.state == "failed" for result in results) else 0


def _words(result: Synced) -> str:
    if result.state == "running":
        return f"{result.run} may still be running: left for later"
    return f"{result.run} failed: {result.said}" if result.said else f"{result.run} is in"
