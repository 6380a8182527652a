"""Every setting of runyard.yaml as an option, made from the fields of the request.

`add_resource_flags(parser)` gives a command the options that it does not have by itself.
`given_flags(args)` says what was written.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection
from dataclasses import Field
from typing import Any

from runyard.cli.completers import complete_cluster
from runyard.cli.help_text import help_group
from runyard.config.flags import Flags, FlagValue, flag, flag_fields
from runyard.reading.kinds import Flag, Items, Kind, Table, Unfit, Word
from runyard.reading.records import help_of, kind_of_setting

_SLURM, _ENVIRONMENT = "slurm", "environment"
_RARE = {
    _SLURM: "more options of a job",
    _ENVIRONMENT: "options of the environment and the data",
}
_OF_ENVIRONMENT = ("environment.", "staging.")
# What `--help` lists of a job's options.
_COMMON = {
    *(f"resources.{name}" for name in ("gpus", "gpu_type", "cpus", "memory", "time", "nodes")),
    "resources.partition",
    "resources.account",
    "agents.count",
    "agents.at_once",
}
_DEST = "request:"
_SHARED = "request_shared"


def add_resource_flags(
    parser: argparse.ArgumentParser,
    *,
    title: str = "on the cluster",
    only: Collection[str] | None = None,
) -> None:
    """Give a command the options, or those of some settings `only`. Call it after its own."""
    taken = parser._option_string_actions
    shared: dict[str, str] = {}
    group = help_group(
        parser, _SLURM, f"{title} (each is a key of runyard.yaml too)", is_rare=False
    )
    rare = {} if only else {name: help_group(parser, name, text) for name, text in _RARE.items()}
    for path, setting in flag_fields():
        if only is not None and path not in only:
            continue
        section = group
        if rare and path not in _COMMON:
            section = rare[_ENVIRONMENT if path.startswith(_OF_ENVIRONMENT) else _SLURM]
        options: tuple[str, ...] = setting.metadata["flags"]
        long_options = [option for option in options if option.startswith("--")]
        own = next((taken[option] for option in long_options if option in taken), None)
        if own is not None and setting.metadata.get("shared"):
            shared[path] = own.dest
            _add_spellings(section, own, [word for word in long_options if word not in taken])
        else:
            _add(section, path, setting, list(options))
    parser.set_defaults(**{_SHARED: shared})


def _add_spellings(group: Any, own: argparse.Action, options: list[str]) -> None:
    """Other long options for what the command has as an option of its own."""
    if options:
        hidden: Any = {"default": argparse.SUPPRESS, "help": argparse.SUPPRESS}
        group.add_argument(*options, dest=own.dest, type=own.type, **hidden)


def _add(group: Any, path: str, setting: Field[Any], options: list[str]) -> None:
    kind = kind_of_setting(setting)
    words: dict[str, Any] = {"dest": f"{_DEST}{path}", "default": argparse.SUPPRESS}
    if isinstance(kind, Flag):
        words["action"] = argparse.BooleanOptionalAction
    else:
        words["metavar"] = kind.metavar
        words["type"] = _typed(kind)
        if path == "staging.data":  # The seed scripts take several behind one -d.
            words |= {"nargs": "+", "action": "extend"}
        elif isinstance(kind, Items | Table):
            words["action"] = "append"
    # Help shows one spelling of each; the others are taken as well.
    shown = [option for option in options if not option.startswith("--")]
    shown += [option for option in options if option.startswith("--")][:1]
    hidden = [option for option in options if option not in shown]
    help_text = help_of(setting).replace("%", "%%")
    actions = [group.add_argument(*shown, help=help_text, **words)]
    if hidden:
        actions.append(group.add_argument(*hidden, help=argparse.SUPPRESS, **words))
    listed = kind.kind if isinstance(kind, Items) else kind
    for action in actions:
        if isinstance(listed, Word):
            action.completer = lambda **_: list(listed.words)
        elif path == "cluster":
            action.completer = complete_cluster


def _typed(kind: Kind) -> Any:
    def parse(text: str) -> FlagValue:
        try:
            return FlagValue(kind.parse(text), text)
        except Unfit as error:
            raise argparse.ArgumentTypeError(
                f"{text!r} does not fit: {error.wanted}; {error.mend}"
            ) from None

    return parse


def given_flags(args: argparse.Namespace) -> Flags:
    """What a command line gave, its own options for the same thing included."""
    values = vars(args)
    flags: dict[str, FlagValue] = {}
    for path, setting in flag_fields():
        value = values.get(f"{_DEST}{path}")
        if value is None and path in values.get(_SHARED, {}):
            own = values.get(values[_SHARED][path])
            value = None if own == setting.default else own
        if value is not None:
            flags[path] = flag(path, value if isinstance(value, list) else [value])
    return Flags(flags)
