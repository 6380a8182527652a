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
from runyard.cli.admin.users import add_action
from runyard.cli.connect import server
from runyard.cli.output import Columns, ago, print_answer, print_list
from runyard.cli.parser import flag
from runyard.errors import UsageError

_COLUMNS: Columns = {
    "SESSION": "id",
    "USER": "user",
    "LOGGED IN": lambda session: ago(session["created_at"]),
    "USED": lambda session: ago(session["used_at"]),
    "FROM": lambda session: session["used_from"] or "-",
    "BROWSER": "browser",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_action(parser, "session", "with end: which one", "end")
    flag(parser, "--all", "with end: all of yours")


def run(args: argparse.Namespace) -> int:
    if (args.action == "end") != bool(args.session or args.all) or (args.session and args.all):
        raise UsageError(
            "runyard users sessions: `end` takes a session or --all, and `list` neither",
            mend="runyard users sessions end SESSION",
        )
    people = server().people
    if args.all:
        ended = people.end_sessions()
        text = f"ended {ended} {'session' if ended == 1 else 'sessions'}"
        print_answer({"ended": ended}, text, as_json=args.json)
    elif args.action == "end":
        session = end_session(people, args.session)
        text = f"ended the session {session['id']}: its browser is logged out"
        print_answer({"ended": 1}, text, as_json=args.json)
    else:
        print_list(_COLUMNS, people.sessions(), "no browser is logged in", as_json=args.json)
    return 0
