"""Bring in runs that were recorded without the server, or send runs to another W&B server.

  runyard sync               every run of the state folder that is owed
  runyard sync RUN ...       these: by id, or folders that a wandb client wrote
  runyard sync RUN ... --to cloud --entity my-team
  runyard sync --all --from-project spirals --to https://wandb.example.org
  runyard sync RUN --to cloud --dry-run    what would go over

Where a node cannot reach the server, `runyard run` lets wandb record on disk. That is brought in at
the job's end if the server can be reached then, by the next command that starts the server, or by
this one. What is in is marked and not sent again; sending it twice would do no harm.

With --to, from a machine that reaches W&B's cloud or another W&B server: config, history, system
metrics, summary, tags, files and the console go over, under the same run id, and the artifacts that
the run logged or used. What was cut off goes on where it was; repeated, it sends what is new.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys

from runyard.actions.tidying.push import Failed, PushRequest, push
from runyard.actions.tidying.sync import sync
from runyard.cli.completers import complete_run
from runyard.cli.connect import server
from runyard.cli.output import print_json, say, show
from runyard.cli.parser import add, flag, refuse_options
from runyard.errors import UsageError
from runyard.home import locate


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add(parser, "runs RUN", "a run, or a wandb folder", nargs="*", completer=complete_run)
    add(parser, "--to WHERE", "send them: to cloud, or a server's URL")
    flag(parser, "--all", "every run that is owed (the default); with --to, all")
    flag(parser, "--again", "also what was brought in before")
    flag(parser, "-q --quiet", "print only what goes wrong")
    flag(parser, "--json", "print JSON")
    sent = parser.add_argument_group("with --to")
    add(sent, "--from-project NAME", "with --all: only this project's")
    add(sent, "--entity", "user or team there (default: the key's own)")
    add(sent, "--project", "project there (default: the same name)")
    add(sent, "--key NAME", "the key's name in keys.json")
    flag(sent, "--dry-run", "only say what would be sent")


def run(args: argparse.Namespace) -> int:
    if args.to is not None:
        return _send(args)
    why = "{0} is for sending runs, and there is no --to"
    refuse_options(
        args, "from-project entity project key dry-run", why, "runyard sync RUN --to cloud"
    )
    home, results = locate(), []
    for result in sync(home, args.runs, lambda: server(home, sync=False), again=args.again):
        results.append(result)
        if not args.json and (not args.quiet or result.state == "failed"):
            print(result.in_words(), flush=True)
    if args.json:
        print_json([result.to_json() for result in results])
    elif not results and not args.quiet:
        print("nothing to bring in")
    return 1 if any(result.state == "failed" for result in results) else 0


def _send(args: argparse.Namespace) -> int:
    if bool(args.runs) == args.all:
        raise UsageError("runyard sync --to: which runs?", mend="name some, or --all (not both)")
    request = PushRequest(
        args.to, tuple(args.runs), from_project=args.from_project, entity=args.entity,
        project=args.project, key=args.key, dry_run=args.dry_run,
    )  # fmt: skip
    tells = not args.quiet and sys.stderr.isatty()
    reports, failed = [], 0
    for result in push(request, server, show, say if tells else lambda _text: None):
        if isinstance(result, Failed):
            failed += 1
            error = result.error
            say(f"{result.run}: {error.what}{f' ({error.said})' if error.said else ''}; "
                f"the same command goes on from there")  # fmt: skip
            continue
        reports.append(dataclasses.asdict(result))
        if not args.json:
            print(result.in_words(dry=args.dry_run), flush=True)
    if args.json:
        print_json(reports)
    return 1 if failed else 0
