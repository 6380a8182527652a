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

from runyard.cli.clusters import complete_cluster
from runyard.cli.letters import spelled
from runyard.cli.output import print_json, say
from runyard.clusters.load import load_profile, profile_folders, profile_names
from runyard.clusters.place import recognise, this_place
from runyard.clusters.profile import Profile
from runyard.config.check import check
from runyard.config.project_draft import project_draft
from runyard.config.project_file import read_project
from runyard.config.project_look import Look, look
from runyard.config.project_text import FILE_NAME, find_project_file, read_project_text
from runyard.config.request import Resources
from runyard.config.sweep_file import read_sweep_file
from runyard.errors import ConfigError, StateError, UsageError
from runyard.home import write_whole
from runyard.reading.kinds import Unfit
from runyard.reading.problems import closest
from runyard.reading.records import kind_of_setting, settings_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        *spelled("--yes"), action="store_true", help="ask nothing; take what is found"
    )
    parser.add_argument("--dry-run", action="store_true", help="print the file; write nothing")
    parser.add_argument("--force", action="store_true", help="write over a file that is there")
    cluster = parser.add_argument(
        "--cluster", metavar="NAME", help="the cluster (default: the one that this is)"
    )
    cluster.completer = complete_cluster  # type: ignore[attr-defined]
    parser.add_argument("--json", action="store_true", help="print what was found, as JSON")


def run(args: argparse.Namespace) -> int:
    folder = Path.cwd()
    file = folder / FILE_NAME
    if file.exists() and not args.force and not args.dry_run:
        raise UsageError(
            f"there is a {FILE_NAME} here already",
            mend=f"edit it; `runyard init --dry-run` shows a new one, --force writes over {file}",
        )
    here = recognise(this_place())
    name = args.cluster or here.name
    profile = load_profile(name)
    found = look(folder)
    if not args.yes and sys.stdin.isatty() and sys.stderr.isatty():
        profile = _ask(found, profile, is_sure=name != "generic")
    if profile.name != here.name:
        found.take("cluster", profile.name, "you" if args.cluster else "your answer")
    text = project_draft(found.settings, found.reasons, profile)
    _say_found(found, profile, folder)
    if args.json:
        print_json(
            {
                "file": str(file),
                "cluster": profile.name,
                "settings": found.settings,
                "reasons": found.reasons,
                "notes": found.notes,
                "text": text,
                "written": not args.dry_run,
            }
        )
    elif args.dry_run:
        print(text, end="")
    if not args.dry_run:
        _write(file, text)
        _say_objections(folder)
        say(f"wrote {file}; look at it, then `runyard submit --dry-run`")
    return 0


def _say_objections(folder: Path) -> None:
    """What the cluster would say to it, as it is."""
    try:
        checked = check(read_project(folder))
        if checked.request.sweep_file is not None:
            read_sweep_file(folder / checked.request.sweep_file, needs_program=True)
    except ConfigError as error:
        say(f"{error.what}{f'; {error.mend}' if error.mend else ''}")
        return
    for note in checked.notes:
        say(note)
    for refusal in checked.refusals:
        say(f"{checked.request.profile.name}: {refusal.what}; {refusal.mend}")


def _say_found(found: Look, profile: Profile, folder: Path) -> None:
    for path, reason in found.reasons.items():
        if path in ("command", "sweep", "environment.kind"):
            say(f"{path}: {found.settings[path]} (from {reason})")
    for note in found.notes:
        say(note)
    if found.others:
        say(f"the program could also be {', '.join(found.others)}")
    above = find_project_file(folder.parent)
    if above is not None:
        say(f"there is {above} as well; here, the nearer file counts")
    if profile.identity.retired:
        say(profile.identity.retired)


def _write(file: Path, text: str) -> None:
    try:
        write_whole(file, text)
        file.chmod(0o644)  # Nothing in it is secret, and others of the project read it.
    except OSError as error:
        raise StateError(f"cannot write {file}", said=error.strerror) from None
    read_project_text(file)  # What we write, we can read; else it is told here and now.


def _ask(found: Look, profile: Profile, *, is_sure: bool) -> Profile:
    """What looking could not tell. Enter takes what stands in brackets."""
    command = found.settings.get("command")
    if "command_file" not in found.settings:
        answer = _question("the command of one run", command or "")
        if answer and answer != command:
            found.settings["command"], found.reasons["command"] = answer, "your answer"
    if not is_sure:
        profile = _ask_cluster(profile)
    for option, reason in profile.submission.mandatory.items():
        path = f"resources.{option}"
        known = settings_of(Resources)
        if path in found.settings or option in profile.submission.defaults or option not in known:
            continue
        while True:
            answer = _question(f"{option} ({reason})", "")
            if not answer:
                break
            try:
                kind_of_setting(known[option]).parse(answer)
            except Unfit as error:
                say(f"{error.wanted}; {error.mend}")
                continue
            found.take(path, answer, "your answer")
            break
    return profile


def _ask_cluster(profile: Profile) -> Profile:
    names = profile_names(profile_folders())
    while True:
        answer = _question(f"the cluster ({', '.join(names)})", profile.name)
        if answer in names:
            return load_profile(answer)
        near = closest(answer, names)
        say(f"there is no profile {answer}{f'; did you mean {near}?' if near else ''}")


def _question(words: str, default: str) -> str:
    """One line from the terminal; the question is not what scripts read, so it goes to stderr."""
    shown = f" [{default}]" if default else ""
    print(f"{words}{shown}: ", end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line:
        raise UsageError("no more answers came", mend="runyard init --yes asks nothing")
    return line.strip() or default
