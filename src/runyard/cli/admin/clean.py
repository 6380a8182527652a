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

from runyard.actions.tidying.clean import (
    CleanNodesRequest,
    clean_jobs,
    clean_nodes,
    clean_snapshots,
)
from runyard.cli.connect import server
from runyard.cli.letters import spelled
from runyard.cli.output import print_json, say, show
from runyard.cli.parser import duration, positive
from runyard.home import locate

_WAIT_SECONDS, _DAYS = 600.0, 30


def add_arguments(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_mutually_exclusive_group(required=True)
    kinds.add_argument("--snapshots", action="store_true", help="copies of code")
    kinds.add_argument("--nodes", action="store_true", help="left-overs on the nodes' own disks")
    kinds.add_argument(
        "--jobs", action="store_true", help="folders of jobs and calls that are over"
    )
    parser.add_argument("--days", type=positive, default=_DAYS, metavar="N",
                        help=f"with --jobs: over for so long (default {_DAYS})")  # fmt: skip
    parser.add_argument(*spelled("--partition"), metavar="NAME", help="whose nodes")
    parser.add_argument(*spelled("--account"), metavar="NAME", help="who pays for the jobs")
    parser.add_argument("--wait", type=duration, default=_WAIT_SECONDS, metavar="TIME",
                        help="how long to wait for nodes that are busy (default 10m)")  # fmt: skip
    parser.add_argument("--dry-run", action="store_true", help="say what would go")
    parser.add_argument("--json", action="store_true", help="print what went as JSON")


def run(args: argparse.Namespace) -> int:
    if args.nodes:
        return _clean_nodes(args)
    api, home = server(), locate()
    if args.jobs:
        what, removed = "folders", clean_jobs(api, home, days=args.days, dry_run=args.dry_run)
    else:
        what, removed = "copies of code", clean_snapshots(api, home, dry_run=args.dry_run)
    if args.json:
        print_json(removed)
    else:
        would = "would be" if args.dry_run else "are"
        say(f"{len(removed)} {what} {would} removed" if removed else "nothing to remove")
    return 0


def _clean_nodes(args: argparse.Namespace) -> int:
    request = CleanNodesRequest(
        Path.cwd(), args.partition, args.account, wait=args.wait, dry_run=args.dry_run
    )
    cleaned = clean_nodes(request, show)
    if args.json:
        print_json([{"node": node.node, "job": node.job, **(node.said or {})} for node in cleaned])
    else:
        for node in cleaned:
            print(node_line(node.node, node.said))
    return 0 if all(node.said is not None for node in cleaned) else 1


def node_line(node: str, answer: dict[str, list[str]] | None) -> str:
    """What became of a node's left-overs, in a line or some."""
    if answer is None:
        return f"{node}: it had no room for the job in that time; its next job removes them"
    held = f"; {len(answer['held'])} of jobs that run stay" if answer["held"] else ""
    if not answer["before"]:
        return f"{node}: nothing to delete{held}"
    before, after = " ".join(answer["before"]), " ".join(answer["after"]) or "nothing"
    return f"{node}: before {before}; after {after}{held}"
