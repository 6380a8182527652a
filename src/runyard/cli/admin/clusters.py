"""The clusters that runyard knows, which one this is, what of it is free, and the hours you used.

  runyard clusters              all of them; the one that this machine belongs to is marked
  runyard clusters show NAME    a profile in full: limits, GPUs, rules, and where each comes from
  runyard clusters which        which one this is, and why
  runyard clusters partitions   what this one has: nodes, CPUs, GPUs, how many are free, limits
  runyard clusters usage        the hours that you have used, by account

A profile of your own goes into ~/.config/runyard/clusters/NAME.yaml; docs/clusters.md tells what
can stand in it. `runyard doctor --write` makes a draft for a cluster that nobody has described.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from runyard.actions.cluster.profiles import list_profiles, section_lines
from runyard.cli.completers import complete_cluster
from runyard.cli.output import Columns, print_json, print_records, say
from runyard.cli.parser import add, flag
from runyard.clusters.load import SHIPPED, load_profile
from runyard.clusters.place import Recognised, recognise, this_place
from runyard.clusters.profile import Profile
from runyard.errors import UsageError
from runyard.reading.records import settings_of
from runyard.reading.units import short_time

_ACTIONS = ("list", "show", "which", "partitions", "usage")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    text = f"list (the default), {', '.join(_ACTIONS[1:])}"
    add(parser, "action ACTION", text, nargs="?", default="list", choices=_ACTIONS)
    add(parser, "name NAME", "with show: a profile", nargs="?", completer=complete_cluster)
    flag(parser, "--json", "print JSON")


def run(args: argparse.Namespace) -> int:
    if args.action != "show" and args.name is not None:
        raise UsageError(
            f"runyard clusters {args.action} takes no name",
            mend=f"runyard clusters show {args.name}",
        )
    if args.action == "show":
        return _show(args.name or recognise(this_place()).name, as_json=args.json)
    if args.action == "which":
        return _which(recognise(this_place()), as_json=args.json)
    return _list(as_json=args.json)


def _which(here: Recognised, *, as_json: bool) -> int:
    profile = load_profile(here.name)
    if as_json:
        print_json({"name": here.name, "because": here.because, "files": list(profile.files)})
        return 0
    print(f"{here.name}: {here.because}")
    if profile.identity.retired:
        print(f"  {profile.identity.retired}")
    if here.name == "generic":
        print("  `runyard doctor` looks what it can do; RUNYARD_CLUSTER=NAME says which it is")
    return 0


def _list(*, as_json: bool) -> int:
    listed = list_profiles()
    here = listed.here
    if as_json:
        print_json(listed.to_json())
    else:
        print_records({"": lambda profile: "*" if profile.name == here.name else "", **_COLUMNS},
                      listed.profiles)  # fmt: skip
        say(f"this is {here.name}: {here.because}")
    for _, error in listed.broken:
        say(f"left out: {error.what}; {error.mend}")
    return 1 if listed.broken else 0


def _title(profile: Profile) -> str:
    title = profile.identity.title or ""
    if Path(profile.files[-1]).parent != SHIPPED:
        return f"yours: {title}"
    return f"retired: {title}" if profile.identity.retired else title


def _show(name: str, *, as_json: bool) -> int:
    profile = load_profile(name)
    if as_json:
        print_json(asdict(profile))
        return 0
    print(f"{name}: {profile.identity.title or ''}")
    files = [
        file.name if file.parent == SHIPPED else str(file) for file in map(Path, profile.files)
    ]
    print(f"  made of {', '.join(files)}")
    for section in settings_of(Profile):
        lines = section_lines(getattr(profile, section))
        if lines:
            print(f"\n{section}:")
            print("\n".join(lines))
    return 0


_COLUMNS: Columns = {
    "NAME": lambda profile: profile.name,
    "GPUS": lambda profile: ", ".join(profile.gpus.types) or "-",
    "LONGEST": lambda profile: (
        short_time(profile.limits.longest) if profile.limits.longest else "-"
    ),
    "INTERNET": lambda profile: profile.network.internet,
    "TITLE": _title,
}
