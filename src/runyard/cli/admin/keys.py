"""The keys by which wandb clients and commands come in: list, add or revoke them.

  runyard users keys                         those that there are
  runyard users keys add --label laptop      prints a key, once
  runyard users keys add --scope runs        one that logs and reads runs, and opens nothing else
  runyard users keys revoke laptop           refused at once
  runyard users keys revoke --kind shell     those of all shells that have called `runyard env`

A key is shown once, when it is made; the server keeps a hash. A revoked key is refused at once,
and programs that log with it log no more. Shells, runs and jobs have keys of their own, for runs
only, which end by themselves some days after their last use.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter

from runyard.actions.server.people import revoke_key
from runyard.cli.connect import server
from runyard.cli.output import ago, duration, print_json, print_table, say
from runyard.client.people import Key, PeopleApi
from runyard.errors import UsageError

_HANDED_OUT = ("shell", "run", "job")
# There can be many of these, and they come and go.
_SUMMED_UP = ("run", "job")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action", nargs="?", default="list", choices=("list", "add", "revoke"), metavar="ACTION",
        help="list (the default), add or revoke",
    )  # fmt: skip
    parser.add_argument(
        "key", nargs="?", metavar="KEY", help="with revoke: the key's id, its beginning, or a label"
    )
    parser.add_argument("--label", metavar="TEXT", help="with add: what the key is for")
    parser.add_argument("--scope", choices=("all", "runs"),
                        help="with add: what it opens (default: all that is yours)")  # fmt: skip
    parser.add_argument("--kind", choices=_HANDED_OUT,
                        help="with revoke: all keys of shells, of runs or of jobs")  # fmt: skip
    parser.add_argument("--all", action="store_true", help="also list each run's and each job's")
    parser.add_argument("--user", metavar="NAME", help="whose key (default: your own; admin only)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    if args.kind is not None and args.action != "revoke":
        raise UsageError(
            "--kind is for `runyard users keys revoke`", mend="`runyard users keys --help`"
        )
    is_named = (args.key is not None) is not (args.kind is not None)
    if (args.action == "revoke") != is_named:
        wrong = "which key?" if args.key is None else f"{args.action} takes no key"
        raise UsageError(
            f"runyard users keys {args.action}: {wrong}", mend="runyard users keys revoke KEY"
        )
    people = server().people
    if args.action == "add":
        made = people.add_key(args.label or "", args.user, scope=args.scope)
        if args.json:
            print_json(made)
        else:
            print(made["key"])
            say(f"key {made['id']} of {made['user']}; it is not shown again")
        return 0
    if args.kind is not None:
        return _revoke_kind(people, args)
    if args.action == "revoke":
        return _revoke(people, args)
    keys = [key for key in people.list_keys() if args.user in (None, key["user"])]
    if args.json:
        print_json(keys)
        return 0
    _print_keys(keys, shows_all=args.all)
    return 0


def _print_keys(keys: list[Key], *, shows_all: bool) -> None:
    shown = [key for key in keys if shows_all or key["kind"] not in _SUMMED_UP]
    print_table(
        ("KEY", "USER", "KIND", "OPENS", "MADE", "USED", "FROM", "ENDS", "LABEL"),
        (
            (
                key["id"],
                key["user"],
                key["kind"],
                key["scope"],
                ago(key["created_at"]),
                "never" if key["used_at"] is None else ago(key["used_at"]),
                key["used_from"] or "",
                "" if key["expires_at"] is None else _in(key["expires_at"] - time.time()),
                key["label"],
            )
            for key in shown
        ),
    )
    rest = Counter(key["kind"] for key in keys if key not in shown)
    if rest:
        counts = " and ".join(f"{count} keys of {kind}s" for kind, count in sorted(rest.items()))
        say(f"and {counts}: `runyard users keys --all` lists them")


def _in(seconds: float) -> str:
    return f"in {duration(seconds)}"


def _revoke_kind(people: PeopleApi, args: argparse.Namespace) -> int:
    count = people.revoke_kind(args.user or people.me()["name"], args.kind)
    if args.json:
        print_json({"revoked": count})
    else:
        print(f"revoked {count} keys of {args.kind}s: they are refused from now on")
    return 0


def _revoke(people: PeopleApi, args: argparse.Namespace) -> int:
    key = revoke_key(people, args.key, args.user)
    if args.json:
        print_json({"revoked": key})
    else:
        print(f"revoked {key['id']} of {key['user']}: it is refused from now on")
    return 0
