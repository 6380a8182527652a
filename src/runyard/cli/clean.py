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
import os
import sys
import time
from pathlib import Path

from runyard.cli.connect import server
from runyard.cli.letters import spelled
from runyard.cli.output import print_json, say
from runyard.cli.parser import duration
from runyard.client.api import Api
from runyard.errors import UsageError
from runyard.home import Home, locate

# A copy that was wanted a moment ago may be on its way to Slurm.
_YOUNG_SECONDS = 600.0
_OPEN = ("running", "paused")
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
    import runyard
    from runyard.config.flags import Flags, Given
    from runyard.config.project_file import read_project
    from runyard.launch.node_cleaning import clean_nodes
    from runyard.launch.plan import Interpreter
    from runyard.schedulers.slurm.commands import find_slurm
    from runyard.schedulers.slurm.partitions import nodes_of

    find_slurm()
    asked = {"partition": args.partition, "account": args.account}
    given = {
        f"resources.{name}": Given(value, f"--{name} {value}")
        for name, value in asked.items()
        if value is not None
    }
    request = read_project(Path.cwd(), Flags(given))
    up, away = nodes_of(request.resources.partition, os.environ)
    for node in away:
        say(f"{node} is away: what is there is removed by the next job on it")
    source = str(Path(runyard.__file__).resolve().parents[1])
    folder = locate().path / "jobs" / f"clean-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
    found = clean_nodes(
        request, Interpreter(sys.executable, source), up, folder, environ=os.environ,
        dry_run=args.dry_run, seconds=args.wait,
    )  # fmt: skip
    if args.json:
        print_json([{"node": one.node, "job": one.job, **(one.said or {})} for one in found])
    else:
        for one in found:
            print(node_line(one.node, one.said))
    return 0 if all(one.said is not None for one in found) else 1


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


def clean_snapshots(api: Api, home: Home, *, dry_run: bool = False) -> list[str]:
    """The digests of the copies that went."""
    from runyard.launch.snapshot import MANIFEST, clean, snapshots_of
    from runyard.node.data.bring_back import bring_back

    needed = _needed(api)
    before = time.time() - _YOUNG_SECONDS

    def let_go(copy: Path) -> bool:
        if not dry_run:
            bring_back(str(copy / MANIFEST))
        return not dry_run

    return clean(snapshots_of(home.path), needed, older_than=before, let_go=let_go)


def _needed(api: Api) -> set[str]:
    """The digests that jobs may still start with, or agents be added with."""
    from runyard.launch.watching import look

    known = [job for job in api.jobs.jobs() if job["snapshot"] is not None]
    looked = look(api.jobs, known).jobs
    sweeps = {sweep["key"] for sweep in api.sweeps.sweeps() if sweep["state"] in _OPEN}
    return {
        str(job["snapshot"]) for job in looked if job["ended_at"] is None or job["sweep"] in sweeps
    }
