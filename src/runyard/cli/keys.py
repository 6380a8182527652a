"""The keys by which wandb clients and commands come in: list, add or revoke them.

  runyard keys                         those that there are
  runyard keys add --label laptop      prints a key, once
  runyard keys revoke laptop           refused at once

A key is shown once, when it is made; the server keeps a hash. A revoked key is refused at once,
and programs that log with it log no more.
"""

from __future__ import annotations

import argparse

from runyard.cli.connect import server
from runyard.cli.output import ago, print_json, print_table, say
from runyard.client.people import Key, PeopleApi
from runyard.errors import NotFoundError, UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action", nargs="?", default="list", choices=("list", "add", "revoke"), metavar="ACTION",
        help="list (the default), add or revoke",
    )  # fmt: skip
    parser.add_argument(
        "key", nargs="?", metavar="KEY", help="with revoke: the key's id, its beginning, or a label"
    )
    parser.add_argument("--label", metavar="TEXT", help="with add: what the key is for")
    parser.add_argument("--user", metavar="NAME", help="whose key (default: your own; admin only)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    if (args.action == "revoke") != (args.key is not None):
        wrong = "which key?" if args.key is None else f"{args.action} takes no key"
        raise UsageError(f"runyard keys {args.action}: {wrong}", mend="runyard keys revoke KEY")
    people = server().people
    if args.action == "add":
        made = people.add_key(args.label or "", args.user)
        if args.json:
            print_json(made)
        else:
            print(made["key"])
            say(f"key {made['id']} of {made['user']}; it is not shown again")
        return 0
    keys = [key for key in people.list_keys() if args.user in (None, key["user"])]
    if args.action == "revoke":
        return _revoke(people, keys, args)
    if args.json:
        print_json(keys)
        return 0
    print_table(
        ("KEY", "USER", "MADE", "USED", "LABEL"),
        (
            (
                key["id"],
                key["user"],
                ago(key["created_at"]),
                "never" if key["used_at"] is None else ago(key["used_at"]),
                key["label"],
            )
            for key in keys
        ),
    )
    return 0


def _revoke(people: PeopleApi, keys: list[Key], args: argparse.Namespace) -> int:
    matching = [key for key in keys if key["id"].startswith(args.key) or key["label"] == args.key]
    if len(matching) != 1:
        which = "no key" if not matching else "more than one key"
        raise NotFoundError(
            f"{which} is called {args.key!r}", mend="`runyard keys list` names them"
        )
    people.revoke_key(matching[0])
    if args.json:
        print_json({"revoked": matching[0]})
    else:
        print(f"revoked {matching[0]['id']} of {matching[0]['user']}: it is refused from now on")
    return 0
