"""Commands that list, add or remove things by their names."""

from __future__ import annotations

import argparse

from runyard.errors import UsageError


def add_action(parser: argparse.ArgumentParser, name: str, explained: str, *actions: str) -> None:
    """`actions`: besides listing, which is what is done without one."""
    parser.add_argument(
        "action", nargs="?", default="list", choices=("list", *actions), metavar="ACTION",
        help=f"{', '.join(('list (the default)', *actions[:-1]))} or {actions[-1]}",
    )  # fmt: skip
    parser.add_argument(name, nargs="?", metavar=name.upper(), help=explained)
    parser.add_argument("--json", action="store_true", help="print JSON")


def check_name(args: argparse.Namespace, name: str, question: str) -> None:
    """Refuse an action without the name that it needs, and a list with one."""
    value = getattr(args, name)
    if (args.action == "list") != (value is None):
        command = f"runyard {args.command}"
        wrong = "list takes no name" if value else question
        raise UsageError(f"{command} {args.action}: {wrong}", mend=f"{command} add {name.upper()}")
