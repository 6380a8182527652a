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
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from runyard.cli.output import print_json, print_table, say
from runyard.clusters.load import SHIPPED, load_profile, profile_folders, profile_names
from runyard.clusters.place import Recognised, recognise, this_place
from runyard.clusters.profile import Profile
from runyard.errors import ConfigError, UsageError
from runyard.reading.kinds import Memory, Span
from runyard.reading.records import kind_of_setting, settings_of
from runyard.reading.units import short_memory, short_time

_ACTIONS = ("list", "show", "which", "partitions", "usage")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action", nargs="?", default="list", choices=_ACTIONS, metavar="ACTION",
        help=f"list (the default), {', '.join(_ACTIONS[1:])}",
    )  # fmt: skip
    name = parser.add_argument("name", nargs="?", metavar="NAME", help="with show: a profile")
    name.completer = complete_cluster  # type: ignore[attr-defined]
    parser.add_argument("--json", action="store_true", help="print JSON")


def complete_cluster(prefix: str, **_: object) -> list[str]:
    return [name for name in profile_names(profile_folders()) if name.startswith(prefix)]


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
    rows, broken = [], []
    try:
        here = recognise(this_place())
    except ConfigError:  # It is told below.
        here = Recognised("unknown", "not all profiles can be read")
    for name in profile_names(profile_folders()):
        try:
            rows.append(load_profile(name))
        except ConfigError as error:
            broken.append((name, error))
    if as_json:
        print_json(
            [
                {"name": one.name, "title": one.identity.title, "here": one.name == here.name,
                 "gpus": list(one.gpus.types), "internet": one.network.internet,
                 "longest": one.limits.longest, "checked": one.identity.checked,
                 "retired": one.identity.retired, "file": one.files[-1]}
                for one in rows
            ]
            + [{"name": name, "error": trouble.to_json()} for name, trouble in broken]
        )  # fmt: skip
    else:
        print_table(
            ("", "NAME", "GPUS", "LONGEST", "INTERNET", "TITLE"),
            (
                (
                    "*" if one.name == here.name else "",
                    one.name,
                    ", ".join(one.gpus.types) or "-",
                    short_time(one.limits.longest) if one.limits.longest else "-",
                    one.network.internet,
                    _title(one),
                )
                for one in rows
            ),
        )
        say(f"this is {here.name}: {here.because}")
    for _, trouble in broken:
        say(f"left out: {trouble.what}; {trouble.mend}")
    return 1 if broken else 0


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
    print(f"  made of {', '.join(_shown_file(file) for file in profile.files)}")
    for section in settings_of(Profile):
        lines = _section_lines(getattr(profile, section), depth=1)
        if lines:
            print(f"\n{section}:")
            print("\n".join(lines))
    return 0


def _shown_file(file: str) -> str:
    path = Path(file)
    return path.name if path.parent == SHIPPED else file


def _section_lines(record: Any, depth: int) -> list[str]:
    """What a section says, without what it leaves open, as its file would write it."""
    lines, indent = [], "  " * depth
    for name, one in settings_of(type(record)).items():
        value = getattr(record, name)
        if value is None or value in ((), {}):
            continue
        if isinstance(value, Mapping):
            lines.append(f"{indent}{name}:")
            for key, entry in value.items():
                lines.append(f"{indent}  {key}: {_entry(entry)}")
        elif isinstance(value, tuple) and any(len(str(item)) > 24 for item in value):
            lines.append(f"{indent}{name}:")
            lines += [f"{indent}  - {item}" for item in value]
        else:
            lines.append(f"{indent}{name}: {_value(kind_of_setting(one), value)}")
    return lines


def _entry(value: Any) -> str:
    if hasattr(value, "__dataclass_fields__"):
        parts = [
            f"{name}: {_value(kind_of_setting(one), getattr(value, name))}"
            for name, one in settings_of(type(value)).items()
            if getattr(value, name) != one.default
        ]
        return f"{{{', '.join(parts)}}}"
    return _value(None, value)


def _value(kind: Any, value: Any) -> str:
    if isinstance(kind, Span):
        return short_time(value)
    if isinstance(kind, Memory):
        return short_memory(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return f"[{', '.join(str(item) for item in value)}]"
    return f"{value:g}" if isinstance(value, float) else str(value)
