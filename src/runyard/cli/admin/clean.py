"""Remove what nobody needs any more.

  runyard clean --nodes                what dead jobs left on the disks of the partition's nodes
  runyard clean --nodes -p gpu         the same in another partition
  runyard clean --snapshots            copies of code that no job and no open sweep needs
  runyard clean --snapshots --dry-run  which they are; removes nothing

On nodes a short job to each does it; folders of jobs that still run stay. What programs have left
in a copy of the code is brought to the project first.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from runyard.actions.tidying.clean import CleanNodesRequest, clean_nodes, clean_snapshots
from runyard.cli.connect import server
from runyard.cli.letters import spelled
from runyard.cli.output import print_json, say, show
from runyard.cli.parser import duration
from runyard.errors import UsageError
from runyard.home import locate

_WAIT_SECONDS = 600.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--snapshots", action="store_true", help="copies of code")
    parser.add_argument("--nodes", action="store_true", help="left-overs on the nodes' own disks")
    parser.add_argument(*spelled("--partition"), metavar="NAME", help="whose nodes")
    parser.add_argument(*spelled("--account"), metavar="NAME", help="who pays for the jobs")
    parser.add_argument("--wait", type=duration, default=_WAIT_SECONDS, metavar="TIME",
                        help="how long to wait for nodes that are busy (default 10m)")  # fmt: skip
    parser.add_argument("--dry-run", action="store_true", help="say what would go")
    parser.add_argument("--json", action="store_true", help="print what went as JSON")


def run(args: argparse.Namespace) -> int:
    if not args.snapshots and not args.nodes:
        raise UsageError("runyard clean: what?", mend="runyard clean --nodes, or --snapshots")
    if args.nodes and args.snapshots:
        raise UsageError("runyard clean: one at a time", mend="leave --nodes or --snapshots out")
    return _clean_nodes(args) if args.nodes else _clean_copies(args)


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


def node_line(node: str, said: dict[str, list[str]] | None) -> str:
    """What became of a node's left-overs, in a line or some."""
    if said is None:
        return f"{node}: it had no room for the job in that time; its next job removes them"
    held = f"; {len(said['held'])} of jobs that run stay" if said["held"] else ""
    if not said["before"]:
        return f"{node}: nothing to delete{held}"
    before, after = " ".join(said["before"]), " ".join(said["after"]) or "nothing"
    return f"{node}: before {before}; after {after}{held}"


def _clean_copies(args: argparse.Namespace) -> int:
    home = locate()
    removed = clean_snapshots(server(), home, dry_run=args.dry_run)
    if args.json:
        print_json(removed)
    else:
        would = "would be" if args.dry_run else "are"
        say(f"{len(removed)} copies of code {would} removed" if removed else "nothing to remove")
    return 0
