"""Write a runyard.yaml for this project, by looking at it and at the cluster.

  runyard init              look, ask what is not clear, write
  runyard init --yes        look and write; ask nothing
  runyard init --dry-run    show the file; write nothing

It reads lock files, programs, sweep files, and a job script with #SBATCH lines, if one is here, and
says where each thing comes from. A file that is there is never written over without --force.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from runyard.actions.cluster.project_draft import InitRequest, draft_project, write_project
from runyard.cli.completers import complete_cluster
from runyard.cli.output import print_json, say, show
from runyard.cli.parser import add, flag
from runyard.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    flag(parser, "-y --yes", "ask nothing; take what is found")
    flag(parser, "--dry-run", "print the file; write nothing")
    flag(parser, "--force", "write over a file that is there")
    add(parser, "--cluster NAME", "the cluster (default: the one that this is)",
        completer=complete_cluster)  # fmt: skip
    flag(parser, "--json", "print what was found, as JSON")


def run(args: argparse.Namespace) -> int:
    asks = not args.yes and sys.stdin.isatty() and sys.stderr.isatty()
    request = InitRequest(Path.cwd(), args.cluster, replaces=args.force or args.dry_run)
    draft = draft_project(request, _question if asks else None, show)
    if args.json:
        print_json({**draft.to_json(), "written": not args.dry_run})
    elif args.dry_run:
        print(draft.text, end="")
    if not args.dry_run:
        write_project(draft, show)
        say(f"wrote {draft.file}; look at it, then `runyard submit --dry-run`")
    return 0


def _question(words: str, default: str) -> str:
    """One line from the terminal; the question is not what scripts read, so it goes to stderr."""
    shown = f" [{default}]" if default else ""
    print(f"{words}{shown}: ", end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line:
        raise UsageError("no more answers came", mend="runyard init --yes asks nothing")
    return line.strip() or default
