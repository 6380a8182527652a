"""Send runs to W&B's cloud or to any other W&B server, from a machine that reaches it.

  runyard push RUN ... --to cloud --entity my-team
  runyard push --all --from-project spirals --to https://wandb.example.org
  runyard push RUN --to cloud --dry-run    what would go over

Config, history, system metrics, summary, tags, files and the console go over, under the same run
id, and the artifacts that the run logged or used. A push that was cut off goes on where it was;
repeated, it sends what is new.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys

from runyard.actions.tidying.push import Failed, PushRequest, push
from runyard.cli.completers import complete_run
from runyard.cli.connect import server
from runyard.cli.letters import spelled
from runyard.cli.output import print_json, say, show
from runyard.client.push import Report
from runyard.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    runs = parser.add_argument("runs", nargs="*", metavar="RUN", help="which runs")
    runs.completer = complete_run  # type: ignore[attr-defined]
    parser.add_argument("--to", required=True, metavar="WHERE", help="cloud, or a server's URL")
    parser.add_argument("--all", action="store_true", help="all runs (of --from-project)")
    parser.add_argument("--from-project", metavar="NAME", help="with --all: only this project's")
    parser.add_argument("--entity", help="user or team there (default: the key's own)")
    parser.add_argument("--project", help="project there (default: the same name)")
    parser.add_argument("--key", metavar="NAME", help="the key's name in keys.json")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be sent")
    parser.add_argument(*spelled("--quiet"), action="store_true", help="print no progress")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    if bool(args.runs) == args.all:
        raise UsageError("runyard push: which runs?", mend="name some, or --all (not both)")
    request = PushRequest(
        args.to, tuple(args.runs), from_project=args.from_project, entity=args.entity,
        project=args.project, key=args.key, dry_run=args.dry_run,
    )  # fmt: skip
    progress = say if not args.quiet and sys.stderr.isatty() else _silent
    reports, failed = [], 0
    for result in push(request, server, show, progress):
        if isinstance(result, Failed):
            failed += 1
            error = result.error
            say(f"{result.run}: {error.what}{f' ({error.said})' if error.said else ''}; "
                f"the same command goes on from there")  # fmt: skip
            continue
        reports.append(dataclasses.asdict(result))
        if not args.json:
            print(_words(result, dry=args.dry_run), flush=True)
    if args.json:
        print_json(reports)
    return 1 if failed else 0


def _silent(_text: str) -> None:
    pass


def _words(report: Report, *, dry: bool) -> str:
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
