"""Check this cluster, this project, and what jobs can reach; each trouble with its mend.

  runyard doctor                 Slurm, limits, GPUs, folders, tools, server, runyard.yaml
  runyard doctor --job           also what a compute node sees, by a short job: shared folders,
                                 local disk, internet, our server and its key, containers
  runyard doctor --job --write   and a draft of a profile, for a cluster that nobody described

Nothing is changed but by --write. The exit code is 1 where something fails.
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Sequence
from pathlib import Path

from runyard.actions.cluster.doctor import DoctorRequest, examine
from runyard.cli.output import console, print_json, say, show
from runyard.cli.parser import duration
from runyard.cli.resource_flags import add_resource_flags, given_flags
from runyard.clusters.findings import Finding
from runyard.clusters.profile import Profile

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red", "skip": "dim"}
# What a short job may need to be let in.
_FLAGS = (
    "resources.partition", "resources.account", "resources.qos", "resources.constraint",
    "resources.reservation", "resources.gpus", "resources.gpu_type", "resources.extra", "cluster",
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--job", action="store_true", help="look from a compute node, too")
    parser.add_argument("--wait", type=duration, default=300.0, metavar="TIME",
                        help="how long to wait for that job (default 5m)")  # fmt: skip
    parser.add_argument(
        "--write", action="store_true", help="write a draft to ~/.config/runyard/clusters"
    )
    parser.add_argument("--force", action="store_true", help="with --write: over one that is there")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_resource_flags(parser, title="for the job", only=_FLAGS)


def run(args: argparse.Namespace) -> int:
    request = DoctorRequest(
        given_flags(args), Path.cwd(), job=args.job, wait=args.wait, write=args.write,
        force=args.force,
    )  # fmt: skip
    examination = examine(request, show)
    draft = examination.draft
    if args.json:
        print_json(examination.to_json())
    else:
        _print(examination.findings, examination.profile)
    if draft:
        say(f"wrote {draft}: look at it; `runyard clusters show {draft.stem}` reads it")
    return 1 if examination.fails else 0


def _print(findings: Sequence[Finding], profile: Profile) -> None:
    from rich.text import Text

    out = console()
    width = min(out.width, 100)
    wide = max(len(finding.name) for finding in findings)
    group = None
    for finding in findings:
        if finding.group != group:
            group = finding.group
            out.print(Text(("" if finding is findings[0] else "\n") + group, style="bold"))
        indent = " " * (2 + 6 + wide + 2)
        line = Text("  ")
        line.append(f"{finding.state:<6}", style=_COLOURS[finding.state])
        line.append(f"{finding.name:<{wide}}  ")
        room = max(20, width - len(indent))
        words = textwrap.wrap(finding.says, room, break_on_hyphens=False, break_long_words=False)
        line.append(f"\n{indent}".join(words))
        if finding.mend:
            mend = textwrap.wrap(
                f"try: {finding.mend}", room, subsequent_indent="     ",
                break_on_hyphens=False, break_long_words=False,
            )  # fmt: skip
            line.append(f"\n{indent}" + f"\n{indent}".join(mend), style="cyan")
        out.print(line, soft_wrap=True)
    counts = {
        state: sum(finding.state == state for finding in findings) for state in ("fail", "warn")
    }
    out.print()
    if counts["fail"]:
        out.print(f"{counts['fail']} of {len(findings)} fail, {counts['warn']} to look at")
    else:
        out.print(f"nothing fails; {counts['warn']} to look at")
    for note in profile.identity.notes:
        out.print(f"note: {note}", soft_wrap=True)
