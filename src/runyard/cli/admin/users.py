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

from runyard.cli.admin.list_actions import add_action, check_name
from runyard.cli.connect import server
from runyard.cli.output import Columns, ago, print_answer, print_json, print_records, say

_COLUMNS: Columns = {
    "USER": "name",
    "ROLE": lambda user: "admin" if user["admin"] else "user",
    "KEYS": lambda user: str(user["keys"]),
    "SINCE": lambda user: ago(user["created_at"]),
    "TEAMS": lambda user: ", ".join(user["teams"]) or "-",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_action(
        parser, "name", "whom to add or remove", "add", "remove", "keys", "teams", "sessions"
    )


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
    elif args.json:
        print_json(people.users())
    else:
        print_records(_COLUMNS, people.users())
    return 0
