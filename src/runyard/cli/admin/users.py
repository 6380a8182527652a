"""The people who may use this server: list, add or remove them; their keys, teams and sessions.

  runyard users                list them
  runyard users add bob        prints bob's key, once
  runyard users remove bob     bob's keys are refused; bob's runs stay
  runyard users keys           keys of people, shells, runs and jobs: list, add or revoke
  runyard users teams          people who read and write the same runs
  runyard users sessions       browsers that are logged in to the page: list or end

The state folder's owner is the admin. Everybody else has a key, and sees what is theirs and their
teams'. A new user's key is printed once; hand it over, and `runyard login --host URL` stores it.
"""

from __future__ import annotations

import argparse

from runyard.cli.connect import server
from runyard.cli.output import Columns, ago, print_answer, print_list, say
from runyard.cli.parser import add, flag
from runyard.errors import UsageError

_COLUMNS: Columns = {
    "USER": "name",
    "ROLE": lambda user: (
        "admin" if user["admin"] else "user" if user["service"] is None else "service"
    ),
    "KEYS": lambda user: str(user["keys"]),
    "SINCE": lambda user: ago(user["created_at"]),
    "TEAMS": lambda user: ", ".join(user["teams"]) or "-",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = ("add", "remove", "keys", "teams", "sessions")
    add_action(parser, "name", "whom to add or remove", *actions)


def run(args: argparse.Namespace) -> int:
    check_name(args, "name", "whom?")
    people = server().people
    if args.action == "add":
        user = people.add_user(args.name)
        print_answer(user, user["key"], as_json=args.json)
        if not args.json:
            say(f"this is the key of {args.name}; it is not shown again")
    elif args.action == "remove":
        people.remove_user(args.name)
        text = f"removed {args.name}: the keys are void, the runs stay"
        print_answer({"removed": args.name}, text, as_json=args.json)
    else:
        print_list(_COLUMNS, people.users(), "nobody may use it", as_json=args.json)
    return 0


def add_action(parser: argparse.ArgumentParser, name: str, explained: str, *actions: str) -> None:
    """`actions`: what a command does with names, besides listing, which needs none."""
    text = f"{', '.join(('list (the default)', *actions[:-1]))} or {actions[-1]}"
    add(parser, "action ACTION", text, nargs="?", default="list", choices=("list", *actions))
    add(parser, f"{name} {name.upper()}", explained, nargs="?")
    flag(parser, "--json", "print JSON")


def check_name(args: argparse.Namespace, name: str, question: str) -> None:
    """Refuse an action without the name that it needs, and a list with one."""
    value = getattr(args, name)
    if (args.action == "list") != (value is None):
        command = f"runyard {args.command}"
        wrong = "list takes no name" if value else question
        raise UsageError(f"{command} {args.action}: {wrong}", mend=f"{command} add {name.upper()}")
