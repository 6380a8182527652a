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
from runyard.cli.admin.users import add_action
from runyard.cli.connect import server
from runyard.cli.output import Columns, ago, duration, print_answer, print_json, print_records, say
from runyard.cli.parser import add, flag
from runyard.errors import UsageError
from runyard.shapes.people import HANDED_OUT, Key

# There can be many of these, and they come and go.
_SUMMED_UP = ("run", "job")

_COLUMNS: Columns = {
    "KEY": "id",
    "USER": "user",
    "KIND": "kind",
    "OPENS": "scope",
    "MADE": lambda key: ago(key["created_at"]),
    "USED": lambda key: "never" if key["used_at"] is None else ago(key["used_at"]),
    "FROM": lambda key: key["used_from"] or "",
    "ENDS": lambda key: _in(key["expires_at"]),
    "LABEL": "label",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_action(
        parser, "key", "with revoke: the key's id, its beginning, or a label", "add", "revoke"
    )
    add(parser, "--label TEXT", "with add: what the key is for")
    add(parser, "--scope", "with add: what it opens (default: all that is yours)",
        choices=("all", "runs"))  # fmt: skip
    add(parser, "--kind", "with revoke: all keys of shells, of runs or of jobs",
        choices=HANDED_OUT)  # fmt: skip
    flag(parser, "--all", "also list each run's and each job's")
    add(parser, "--user NAME", "whose key (default: your own; admin only)")


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
        print_answer(made, made["key"], as_json=args.json)
        if not args.json:
            say(f"key {made['id']} of {made['user']}; it is not shown again")
    elif args.kind is not None:
        count = people.revoke_kind(args.user or people.me()["name"], args.kind)
        text = f"revoked {count} keys of {args.kind}s: they are refused from now on"
        print_answer({"revoked": count}, text, as_json=args.json)
    elif args.action == "revoke":
        key = revoke_key(people, args.key, args.user)
        text = f"revoked {key['id']} of {key['user']}: it is refused from now on"
        print_answer({"revoked": key}, text, as_json=args.json)
    else:
        keys = [key for key in people.list_keys() if args.user in (None, key["user"])]
        print_json(keys) if args.json else _print_keys(keys, shows_all=args.all)
    return 0


def _print_keys(keys: list[Key], *, shows_all: bool) -> None:
    shown = [key for key in keys if shows_all or key["kind"] not in _SUMMED_UP]
    print_records(_COLUMNS, shown)
    rest = Counter(key["kind"] for key in keys if key not in shown)
    if rest:
        counts = " and ".join(f"{count} keys of {kind}s" for kind, count in sorted(rest.items()))
        say(f"and {counts}: `runyard users keys --all` lists them")


def _in(then: float | None) -> str:
    return "" if then is None else f"in {duration(then - time.time())}"
