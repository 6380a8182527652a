"""Remove what nobody needs any more.

  runyard clean --nodes                what dead jobs left on the disks of the partition's nodes
  runyard clean --nodes -p gpu         the same in another partition
  runyard clean --snapshots            copies of code that no job and no open sweep needs
  runyard clean --snapshots --dry-run  which they are; removes nothing
  runyard clean --jobs                 scripts, logs and calls of jobs that ended 30 days ago
  runyard clean --jobs --days 7        a week ago

On nodes a short job to each does it; folders of jobs that still run stay. What programs have left
in a copy of the code is brought to the project first. What an open sweep needs stays; what trials
printed stays with the server.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from runyard.actions.tidying import clean as tidying
from runyard.cli.connect import server
from runyard.cli.output import print_json, say, show
from runyard.cli.parser import add, duration, flag, positive
from runyard.home import locate

_WAIT_SECONDS, _DAYS = 600.0, 30


def add_arguments(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_mutually_exclusive_group(required=True)
    flag(kinds, "--snapshots", "copies of code")
    flag(kinds, "--nodes", "left-overs on the nodes' own disks")
    flag(kinds, "--jobs", "folders of jobs and calls that are over")
    text = f"with --jobs: over for so long (default {_DAYS})"
    add(parser, "--days N", text, type=positive, default=_DAYS)
    add(parser, "-p --partition NAME", "whose nodes")
    add(parser, "-a --account NAME", "who pays for the jobs")
    add(parser, "--wait TIME", "how long to wait for nodes that are busy (default 10m)",
        type=duration, default=_WAIT_SECONDS)  # fmt: skip
    flag(parser, "--dry-run", "say what would go")
    flag(parser, "--json", "print what went as JSON")


def run(args: argparse.Namespace) -> int:
    if args.nodes:
        return _clean_nodes(args)
    api, home = server(), locate()
    what = "folders" if args.jobs else "copies of code"
    if args.jobs:
        removed = tidying.clean_jobs(api, home, days=args.days, dry_run=args.dry_run)
    else:
        removed = tidying.clean_snapshots(api, home, dry_run=args.dry_run)
    if args.json:
        print_json(removed)
    else:
        would = "would be" if args.dry_run else "are"
        say(f"{len(removed)} {what} {would} removed" if removed else "nothing to remove")
    return 0


def _clean_nodes(args: argparse.Namespace) -> int:
    request = tidying.CleanNodesRequest(
        Path.cwd(), args.partition, args.account, wait=args.wait, dry_run=args.dry_run
    )
    cleaned = tidying.clean_nodes(request, show)
    if args.json:
        print_json([{"node": node.node, "job": node.job, **(node.said or {})} for node in cleaned])
    else:
        for node in cleaned:
            print(node.in_words())
    return 0 if all(node.said is not None for node in cleaned) else 1
