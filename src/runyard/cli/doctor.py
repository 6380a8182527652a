"""Check this cluster, this project, and what jobs can reach; each trouble with its mend.

  runyard doctor                 Slurm, limits, GPUs, folders, tools, server, runyard.yaml
  runyard doctor --job           also what a compute node sees, by a short job: shared folders,
                                 local disk, internet, our server and its key, containers
  runyard doctor --job --write   and a draft of a profile, for a cluster that nobody described

Nothing is changed but by --write. The exit code is 1 where something fails.
"""

from __future__ import annotations

import argparse
import os
import pwd
import textwrap
import time
from dataclasses import asdict
from pathlib import Path

from runyard.cli.doctor_job import look_from_inside
from runyard.cli.doctor_project import check_project
from runyard.cli.output import console, print_json, say
from runyard.cli.parser import duration
from runyard.cli.resource_flags import add_resource_flags, given_flags
from runyard.clusters.asking import asker
from runyard.clusters.findings import Finding
from runyard.clusters.load import load_profile, profile_folders
from runyard.clusters.place import Recognised, recognise, this_place
from runyard.clusters.profile import Profile
from runyard.clusters.site_checks import check_site, container_kinds, cuda_modules
from runyard.errors import StateError, UsageError
from runyard.home import locate, write_whole
from runyard.schedulers.slurm.doctor.checks import check_slurm
from runyard.schedulers.slurm.doctor.draft import draft, draft_name
from runyard.schedulers.slurm.doctor.node_checks import check_nodes
from runyard.schedulers.slurm.facts import SlurmFacts, gather

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
    flags = given_flags(args)
    place = this_place()
    here = recognise(place)
    named = flags["cluster"]
    if named:
        here = Recognised(named, "--cluster says so")
    profile = load_profile(here.name)
    ask = asker(os.environ)
    facts = gather(ask, _user())
    home = locate()
    findings = [*check_slurm(facts, profile, here), *check_site(profile, ask, os.environ)]
    findings += check_project(Path.cwd(), flags, home)
    answers = None
    if args.job and facts.is_here:
        outcome, folders = look_from_inside(ask, profile, flags, home, args.wait)
        answers = outcome.answers
        findings += check_nodes(outcome, profile, folders)
    elif args.job:
        findings.append(Finding("compute nodes", "job", "skip", "without Slurm there are none"))
    written = None
    if args.write:
        written = _write(facts, place.hosts[0], answers, force=args.force)
    if args.json:
        print_json(
            {
                "cluster": {"name": here.name, "because": here.because},
                "findings": [asdict(one) for one in findings],
                "slurm": {key: value for key, value in asdict(facts).items() if key != "config"},
                "node": answers,
                "draft": str(written) if written else None,
            }
        )
    else:
        _print(findings, profile)
    if written:
        say(f"wrote {written}: look at it; `runyard clusters show {written.stem}` reads it")
    return 1 if any(one.state == "fail" for one in findings) else 0


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return os.environ.get("USER") or str(os.getuid())


def _write(facts: SlurmFacts, host: str, answers: object, *, force: bool) -> Path:
    if not facts.is_here:
        raise UsageError(
            "there is no Slurm here to describe", mend="call it on a cluster's login node"
        )
    folder = profile_folders()[-2]
    file = folder / f"{draft_name(facts, host)}.yaml"
    if file.exists() and not force:
        raise UsageError(
            f"there is a profile {file} already", mend="edit it, or write over it with --force"
        )
    text = draft(
        facts,
        host,
        answers if isinstance(answers, dict) else None,
        date=time.strftime("%Y-%m-%d"),
        containers=container_kinds(os.environ),
        cuda=cuda_modules(asker(os.environ), os.environ),
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(file, text)
        file.chmod(0o644)
    except OSError as error:
        raise StateError(f"cannot write {file}", said=error.strerror) from None
    load_profile(file.stem)  # What we write, we can read.
    return file


def _print(findings: list[Finding], profile: Profile) -> None:
    from rich.text import Text

    out = console()
    width = min(out.width, 100)
    wide = max(len(one.name) for one in findings)
    group = None
    for one in findings:
        if one.group != group:
            group = one.group
            out.print(Text(("" if one is findings[0] else "\n") + group, style="bold"))
        indent = " " * (2 + 6 + wide + 2)
        line = Text("  ")
        line.append(f"{one.state:<6}", style=_COLOURS[one.state])
        line.append(f"{one.name:<{wide}}  ")
        room = max(20, width - len(indent))
        words = textwrap.wrap(one.says, room, break_on_hyphens=False, break_long_words=False)
        line.append(f"\n{indent}".join(words))
        if one.mend:
            mend = textwrap.wrap(
                f"try: {one.mend}", room, subsequent_indent="     ",
                break_on_hyphens=False, break_long_words=False,
            )  # fmt: skip
            line.append(f"\n{indent}" + f"\n{indent}".join(mend), style="cyan")
        out.print(line, soft_wrap=True)
    counts = {state: sum(one.state == state for one in findings) for state in ("fail", "warn")}
    out.print()
    if counts["fail"]:
        out.print(f"{counts['fail']} of {len(findings)} fail, {counts['warn']} to look at")
    else:
        out.print(f"nothing fails; {counts['warn']} to look at")
    for note in profile.identity.notes:
        out.print(f"note: {note}", soft_wrap=True)
