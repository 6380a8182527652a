"""Who is asked into a team: in it is who accepts, or whom the admin puts there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from sqlite3 import Connection
from typing import Any

from runyard.server.people import people, permissions, service_accounts
from runyard.server.people.permissions import Caller
from runyard.server.store.sql import fetch_column

# Open ones of a team: anybody can write down any name.
_MOST = 200


def make_team(db: Connection, name: str, caller: Caller, others: Iterable[str], now: float) -> None:
    people.add_team(db, name, caller.name, now, adopt=caller.admin)
    for other in others:
        if other != caller.name:
            take_in(db, name, other, caller, now)


def take_in(db: Connection, team: str, user: str, caller: Caller, now: float) -> None:
    """Put a user into a team, or ask them, as far as the caller may."""
    caller = _as_of_now(db, caller)
    if permissions.may_put_into_teams(caller):
        people.add_member(db, team, user)
        withdraw(db, team, user)
    elif permissions.may_manage_team(caller, team):
        _invite(db, team, user, caller, now)
    elif user == caller.name and withdraw(db, team, user):
        people.add_member(db, team, user)
    else:
        raise people.Missing(f"there is no team {team!r}")


def let_go(db: Connection, team: str, user: str, caller: Caller, now: float) -> None:
    """End a membership or an invitation: one's own, or anybody's in a team of the caller's."""
    caller = _as_of_now(db, caller)
    may_manage = permissions.may_manage_team(caller, team)
    if not may_manage and user != caller.name:
        raise people.Missing(f"there is no team {team!r}")
    if people.remove_member(db, team, user):
        service_accounts.remove(db, user, now)
        return
    if withdraw(db, team, user):
        return
    # The same for a name that nobody has.
    no_member = f"{user!r} is not in the team {team!r}"
    raise people.Missing(no_member if may_manage else f"there is no team {team!r}")


def end_team(db: Connection, team: str, now: float) -> None:
    """The runs stay; the admin has them from then on."""
    for account in service_accounts.of_team(db, team):
        people.remove_user(db, account, now)
    people.remove_team(db, team)


def of_user(db: Connection, user: str) -> list[dict[str, Any]]:
    rows = db.execute(
        "SELECT team, name AS invited_by, invitations.created_at AS created_at FROM invitations "
        "JOIN users ON users.key = invited_by WHERE user = ? ORDER BY team",
        (user,),
    )
    return [dict(row) for row in rows]


def of_team(db: Connection, team: str) -> list[str]:
    return fetch_column(db, "SELECT user FROM invitations WHERE team = ? ORDER BY user", (team,))


def withdraw(db: Connection, team: str, user: str) -> bool:
    done = db.execute("DELETE FROM invitations WHERE team = ? AND user = ?", (team, user)).rowcount
    return done > 0


def _as_of_now(db: Connection, caller: Caller) -> Caller:
    """The caller with the teams of this moment: others may have let them go meanwhile."""
    return replace(caller, teams=frozenset(people.teams_of(db, caller.key)))


def _invite(db: Connection, team: str, user: str, caller: Caller, now: float) -> None:
    people.check_entity(user)
    if user in (people.members_of(db, team) or ()):
        return
    if len(of_team(db, team)) >= _MOST:
        raise people.Needed(f"{_MOST} invitations to {team!r} are open: take some back first")
    db.execute(
        "INSERT INTO invitations (team, user, invited_by, created_at) VALUES (?, ?, ?, ?) "
        "ON CONFLICT DO NOTHING",
        (team, user, caller.key, now),
    )
