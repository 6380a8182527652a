"""The browsers that are logged in to the page: list or end their sessions.

  runyard users sessions                 which there are
  runyard users sessions end SESSION     by its id, or the beginning of it
  runyard users sessions end --all       yours, all of them

A session ends when its browser logs out, 12 hours after it was last used, after a week, or with the
key that opened it. One that is ended here is refused at once.
"""

from __future__ import annotations

import argparse

from runyard.actions.server.people import end_session
from runyard.cli.connect import server
from runyard.cli.output import ago, print_json, print_table
from runyard.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action", nargs="?", default="list", choices=("list", "end"), metavar="ACTION",
        help="list (the default) or end",
    )  # fmt: skip
    parser.add_argument("session", nargs="?", metavar="SESSION", help="with end: which one")
    parser.add_argument("--all", action="store_true", help="with end: all of yours")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    if (args.action == "end") != bool(args.session or args.all) or (args.session and args.all):
        raise UsageError(
            "runyard users sessions: `end` takes a session or --all, and `list` neither",
            mend="runyard users sessions end SESSION",
        )
    people = server().people
    if args.all:
        ended = people.end_sessions()
        if args.json:
            print_json({"ended": ended})
        else:
            print(f"ended {ended} {'session' if ended == 1 else 'sessions'}")
        return 0
    if args.action == "end":
        ended_session = end_session(people, args.session)
        if args.json:
            print_json({"ended": 1})
        else:
            print(f"ended the session {ended_session['id']}: its browser is logged out")
    elif args.json:
        print_json(people.sessions())
    else:
        print_table(
            ("SESSION", "USER", "LOGGED IN", "USED", "FROM", "BROWSER"),
            (
                (
                    session["id"],
                    session["user"],
                    ago(session["created_at"]),
                    ago(session["used_at"]),
                    session["used_from"] or "-",
                    session["browser"],
                )
                for session in people.sessions()
            ),
        )
    return 0
