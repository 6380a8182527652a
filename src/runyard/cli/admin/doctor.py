"""Check this cluster, this project, and what jobs can reach; each trouble with its mend.

  runyard doctor                 Slurm, limits, GPUs, folders, tools, server, runyard.yaml
  runyard doctor --job           also what a compute node sees, by a short job: shared folders,
                                 local disk, internet, our server and its key, containers
  runyard doctor --job --write   and a draft of a profile, for a cluster that nobody described
  runyard doctor --job --share   a file for us or your site's staff: what was asked and answered,
                                 without names of people, hosts and accounts, and without secrets
  runyard doctor --read FILE     what it would say on the cluster that such a file is of

Nothing is changed but by --write and --share. The exit code is 1 where something fails.
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Sequence
from pathlib import Path

from runyard.actions.cluster.doctor import DoctorRequest, examine
from runyard.actions.cluster.sharing import FILE
from runyard.cli.help_text import WHOLE_WORDS
from runyard.cli.output import console, print_json, say, show
from runyard.cli.parser import add, duration, flag
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
    flag(parser, "--job", "look from a compute node, too")
    add(parser, "--wait TIME", "how long to wait for that job (default 5m)",
        type=duration, default=300.0)  # fmt: skip
    flag(parser, "--write", "write a draft to ~/.config/runyard/clusters")
    add(parser, "--share FILE", f"write what was answered, without names (default {FILE})",
        nargs="?", const=FILE)  # fmt: skip
    add(parser, "--read FILE", "look at such a file in place of this cluster")
    flag(parser, "--force", "with --write or --share: over a file that is there")
    flag(parser, "--json", "print JSON")
    add_resource_flags(parser, title="for the job", only=_FLAGS)


def run(args: argparse.Namespace) -> int:
    request = DoctorRequest(
        given_flags(args), Path.cwd(), job=args.job, wait=args.wait, write=args.write,
        share=args.share and Path(args.share), read=args.read and Path(args.read),
        force=args.force,
    )  # fmt: skip
    examination = examine(request, show)
    draft = examination.draft
    if args.json:
        print_json(examination.to_json())
    else:
        _print(examination.findings, examination.profile)
    if args.share:
        more = "" if args.job else "; --job adds what a compute node sees"
        say(f"wrote {args.share}, with {examination.names} names left out{more}")
        say("read it before you send it: what a partition or a GPU is called may still be in it")
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
        words = textwrap.wrap(finding.says, room, **WHOLE_WORDS)
        line.append(f"\n{indent}".join(words))
        if finding.mend:
            tip = f"try: {finding.mend}"
            mend = textwrap.wrap(tip, room, subsequent_indent="     ", **WHOLE_WORDS)
            line.append(f"\n{indent}" + f"\n{indent}".join(mend), style="cyan")
        out.print(line, soft_wrap=True)
    fails, warns = (sum(finding.state == name for finding in findings) for name in ("fail", "warn"))
    begin = f"{fails} of {len(findings)} fail, " if fails else "nothing fails; "
    out.print(f"\n{begin}{warns} to look at")
    for note in profile.identity.notes:
        out.print(f"note: {note}", soft_wrap=True)
