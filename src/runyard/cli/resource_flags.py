"""Every setting of runyard.yaml as an option, made from the fields of the request.

`add_resource_flags(parser)` gives a command the options that it does not have by itself.
`given_flags(args)` says what was written.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection
from dataclasses import Field
from typing import Any

from runyard.config.flags import Flags, Given, flag, flag_fields
from runyard.reading.kinds import Flag, Items, Kind, Table, Unfit, Word
from runyard.reading.records import help_of, kind_of_setting

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
    group = parser.add_argument_group(f"{title} (each is a key of runyard.yaml too)")
    for path, one in flag_fields():
        if only is not None and path not in only:
            continue
        wanted: tuple[str, ...] = one.metadata["flags"]
        longest = [option for option in wanted if option.startswith("--")]
        own = next((taken[option] for option in longest if option in taken), None)
        if own is not None and one.metadata.get("shared"):
            shared[path] = own.dest
            _add_spellings(group, own, [option for option in longest if option not in taken])
        else:
            _add(group, path, one, list(wanted))
    parser.set_defaults(**{_SHARED: shared})


def _add_spellings(group: Any, own: argparse.Action, options: list[str]) -> None:
    """Other long options for what the command has as an option of its own."""
    if options:
        group.add_argument(
            *options,
            dest=own.dest,
            type=own.type,
            default=argparse.SUPPRESS,
            help=argparse.SUPPRESS,
        )


def _add(group: Any, path: str, one: Field[Any], options: list[str]) -> None:
    kind = kind_of_setting(one)
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
    help_text = help_of(one).replace("%", "%%")
    actions = [group.add_argument(*shown, help=help_text, **words)]
    if hidden:
        actions.append(group.add_argument(*hidden, help=argparse.SUPPRESS, **words))
    listed = kind.kind if isinstance(kind, Items) else kind
    for action in actions:
        if isinstance(listed, Word):
            action.completer = lambda **_: list(listed.words)
        elif path == "cluster":
            action.completer = _complete_cluster


def _complete_cluster(**_: object) -> list[str]:
    from runyard.clusters.load import profile_folders, profile_names

    return profile_names(profile_folders())


def _typed(kind: Kind) -> Any:
    def parse(text: str) -> Given:
        try:
            return Given(kind.parse(text), text)
        except Unfit as error:
            raise argparse.ArgumentTypeError(
                f"{text!r} does not fit: {error.wanted}; {error.mend}"
            ) from None

    return parse


def given_flags(args: argparse.Namespace) -> Flags:
    """What a command line gave, its own options for the same thing included."""
    values = vars(args)
    given: dict[str, Given] = {}
    for path, one in flag_fields():
        found = values.get(f"{_DEST}{path}")
        if found is None and path in values.get(_SHARED, {}):
            own = values.get(values[_SHARED][path])
            found = None if own == one.default else own
        if found is None:
            continue
        given[path] = flag(path, found if isinstance(found, list) else [found])
    return Flags(given)
