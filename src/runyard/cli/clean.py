"""Remove what nobody needs any more.

  runyard clean --snapshots            copies of code that no job and no open sweep needs
  runyard clean --snapshots --dry-run  which they are; removes nothing

What programs have left in a copy is brought to the project first.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from runyard.cli.connect import server
from runyard.cli.output import print_json, say
from runyard.client.api import Api
from runyard.errors import UsageError
from runyard.home import Home, locate

# A copy that was wanted a moment ago may be on its way to Slurm.
_YOUNG_SECONDS = 600.0
_OPEN = ("running", "paused")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--snapshots", action="store_true", help="copies of code")
    parser.add_argument("--dry-run", action="store_true", help="say what would go")
    parser.add_argument("--json", action="store_true", help="print what went as JSON")


def run(args: argparse.Namespace) -> int:
    if not args.snapshots:
        raise UsageError("runyard clean: what?", mend="runyard clean --snapshots")
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
    from runyard.node.bring_back import bring_back

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
