"""Commands that list, add or remove things by their names."""

from __future__ import annotations

import argparse

from runyard.errors import UsageError


def add_action(parser: argparse.ArgumentParser, name: str, explained: str, *more: str) -> None:
    """`more` are actions besides listing, adding and removing."""
    actions = ("list", "add", *more, "remove")
    parser.add_argument(
        "action", nargs="?", default="list", choices=actions, metavar="ACTION",
        help=f"list (the default), {', '.join(actions[1:-1])} or remove",
    )  # fmt: skip
    parser.add_argument(name, nargs="?", metavar=name.upper(), help=explained)
    parser.add_argument("--json", action="store_true", help="print JSON")


def check_name(args: argparse.Namespace, name: str, question: str) -> None:
    """Refuse an action without the name that it needs, and a list with one."""
    given = getattr(args, name)
    if (args.action == "list") != (given is None):
        command = f"runyard {args.command}"
        wrong = "list takes no name" if given else question
        raise UsageError(f"{command} {args.action}: {wrong}", mend=f"{command} add {name.upper()}")
