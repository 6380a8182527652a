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
from runyard.actions.tidying.sync import Synced, sync
from runyard.cli.completers import complete_run
from runyard.cli.connect import server
from runyard.cli.letters import spelled
from runyard.cli.output import print_json, say, show
from runyard.client.push import Report
from runyard.errors import UsageError
from runyard.home import locate


def add_arguments(parser: argparse.ArgumentParser) -> None:
    runs = parser.add_argument("runs", nargs="*", metavar="RUN", help="a run, or a wandb folder")
    runs.completer = complete_run  # type: ignore[attr-defined]
    parser.add_argument("--to", metavar="WHERE", help="send them: to cloud, or a server's URL")
    parser.add_argument(
        "--all", action="store_true", help="every run that is owed (the default); with --to, all"
    )
    parser.add_argument("--again", action="store_true", help="also what was brought in before")
    parser.add_argument(*spelled("--quiet"), action="store_true", help="print only what goes wrong")
    parser.add_argument("--json", action="store_true", help="print JSON")
    sent = parser.add_argument_group("with --to")
    sent.add_argument("--from-project", metavar="NAME", help="with --all: only this project's")
    sent.add_argument("--entity", help="user or team there (default: the key's own)")
    sent.add_argument("--project", help="project there (default: the same name)")
    sent.add_argument("--key", metavar="NAME", help="the key's name in keys.json")
    sent.add_argument("--dry-run", action="store_true", help="only say what would be sent")


def run(args: argparse.Namespace) -> int:
    if args.to is not None:
        return _send(args)
    for option in ("from_project", "entity", "project", "key", "dry_run"):
        if getattr(args, option):
            name = option.replace("_", "-")
            raise UsageError(
                f"--{name} is for sending runs, and there is no --to",
                mend="runyard sync RUN --to cloud",
            )
    home, results = locate(), []
    for result in sync(home, args.runs, lambda: server(home, sync=False), again=args.again):
        results.append(result)
        if not args.json and (not args.quiet or result.state == "failed"):
            print(_synced_words(result), flush=True)
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
            print(_sent_words(result, dry=args.dry_run), flush=True)
    if args.json:
        print_json(reports)
    return 1 if failed else 0


def _synced_words(result: Synced) -> str:
    if result.state == "running":
        return f"{result.run} may still be running: left for later"
    return f"{result.run} failed: {result.said}" if result.said else f"{result.run} is in"


def _sent_words(report: Report, *, dry: bool) -> str:
    lines = ", ".join(f"{count} {name}" for name, count in report.lines.items() if count)
    parts = [f"lines: {lines}"] if lines else []
    if report.files:
        parts.append(f"{len(report.files)} files ({report.bytes / 1e6:.1f} MB)")
    if report.artifacts:
        names = ", ".join(report.artifacts)
        parts.append(f"artifacts: {names} ({report.artifact_bytes / 1e6:.1f} MB)")
    if not parts and not report.new:
        return f"{report.run}: {report.to} has it all"
    verb = "would go to" if dry else "is at"
    return f"{report.run} {verb} {report.to} ({'; '.join(parts) or 'no data'})"
