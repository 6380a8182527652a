"""Service accounts: members of a team that are programs, such as a CI.

One is made through W&B's client. Its key is for runs only, so that it manages neither the team nor
keys. It goes with its membership.
"""

from __future__ import annotations

import re
from itertools import count
from sqlite3 import Connection

from runyard.server.people import people, permissions
from runyard.server.people.api_keys import Wanted
from runyard.server.people.permissions import RUNS, Caller
from runyard.server.store.sql import exists, fetch_column

# Of a team: everybody in it can make them.
_MOST = 50
_LONGEST_PART = 50


def add(db: Connection, team: str, purpose: str, key: str, caller: Caller, now: float) -> str:
    """A new one that comes in with `key`; its name."""
    if not permissions.may_manage_team(caller, team):
        raise people.Missing(f"there is no team {team!r}")
    if len(of_team(db, team)) >= _MOST:
        raise people.Needed(f"{team!r} has {_MOST} service accounts: remove one first")
    word = re.sub(r"[^a-z0-9]+", "-", purpose.lower()).strip("-") or "service"
    start = f"{team[:_LONGEST_PART]}-{word[:_LONGEST_PART]}"
    names = (start if number == 1 else f"{start}-{number}" for number in count(1))
    name = next(name for name in names if not people.is_taken(db, name))
    people.add_user(db, name, now)
    db.execute("UPDATE users SET service = ? WHERE name = ?", (purpose, name))
    people.add_member(db, team, name)
    people.add_key(db, name, key, Wanted(purpose, scope=RUNS), now)
    return name


def of_team(db: Connection, team: str) -> list[str]:
    return fetch_column(
        db,
        "SELECT name FROM members JOIN users ON users.key = members.user "
        "WHERE team = ? AND service IS NOT NULL",
        (team,),
    )


def remove(db: Connection, name: str, now: float) -> None:
    """Of an account that is no service account: nothing."""
    if exists(db, "SELECT 1 FROM users WHERE name = ? AND service IS NOT NULL", (name,)):
        people.remove_user(db, name, now)
