"""Users and their teams; keys are in `api_keys.py`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from sqlite3 import Connection
from typing import Any

from runyard.server.people import api_keys
from runyard.server.people.api_keys import Wanted
from runyard.server.store.names import BadName, check_project
from runyard.server.store.sql import Row, exists, fetch_column, fetch_one, insert

# The first parts of our own addresses.
_RESERVED = frozenset({"api", "files", "graphql", "sdk", "uploads", "login", "assets"})


class Taken(ValueError):
    """The name belongs to somebody, or something, else."""


class Missing(LookupError):
    """There is no such user, key or team."""


class Needed(ValueError):
    """It cannot go: the server's own work depends on it."""


@dataclass(frozen=True)
class People:
    """Everybody, as the server keeps them in memory."""

    keys: dict[str, api_keys.Key] = field(default_factory=dict)  # by the hash of a key
    owned: frozenset[str] = frozenset()

    @cached_property
    def by_key_id(self) -> dict[str, api_keys.Key]:
        return {key.caller.key_id: key for key in self.keys.values()}

    def add(self, keys: Mapping[str, api_keys.Key]) -> None:
        """Keys that were just made: all others stay as they are."""
        self.keys.update(keys)
        self.by_key_id.update((key.caller.key_id, key) for key in keys.values())


def load(db: Connection, hashed: str | None = None) -> People:
    """Everybody with all keys, or with the one that has this hash."""
    teams: dict[int, set[str]] = defaultdict(set)
    for row in db.execute("SELECT team, user FROM members"):
        teams[row["user"]].add(row["team"])
    names = db.execute("SELECT name FROM users UNION SELECT name FROM teams")
    owned = frozenset(row["name"] for row in names)
    return People(api_keys.load(db, teams, owned, hashed), owned)


def add_owner(db: Connection, key: str, name: str, now: float) -> None:
    """Make `key` the state folder's own: the one by which its owner, the admin, comes in."""
    # Whatever LOGNAME says today: the folder has one owner.
    owner = fetch_one(db, "SELECT key FROM users WHERE admin")
    new = {"name": name, "admin": 1, "created_at": now}
    api_keys.own(db, insert(db, "users", new) if owner is None else owner["key"], key, now)


def add_user(db: Connection, name: str, now: float) -> None:
    """A new user; or one who was here before, and finds their runs again."""
    check_entity(name)
    user = db.execute("SELECT removed_at FROM users WHERE name = ?", (name,)).fetchone()
    if user is not None and user["removed_at"] is None:
        raise Taken(f"there already is a user {name!r}")
    if user is not None:
        db.execute("UPDATE users SET removed_at = NULL WHERE name = ?", (name,))
        return
    _refuse_team(db, name)
    if _has_projects(db, name):
        raise Taken(f"the entity {name!r} has runs already, which a user of that name would get")
    db.execute("INSERT INTO users (name, created_at) VALUES (?, ?)", (name, now))


def remove_user(db: Connection, name: str, now: float) -> None:
    """Take a user's keys and memberships. The runs stay, and the name stays theirs."""
    user = find_user(db, name)
    if user["admin"]:
        raise Needed(f"{name!r} owns the state folder and stays")
    db.execute("DELETE FROM api_keys WHERE user = ?", (user["key"],))
    db.execute("DELETE FROM members WHERE user = ?", (user["key"],))
    db.execute("DELETE FROM invitations WHERE user = ? OR invited_by = ?", (name, user["key"]))
    db.execute("UPDATE users SET removed_at = ? WHERE key = ?", (now, user["key"]))


def find_user(db: Connection, name: str) -> Row:
    user = fetch_one(db, "SELECT * FROM users WHERE name = ? AND removed_at IS NULL", (name,))
    if user is None:
        raise Missing(f"there is no user {name!r}")
    return user


def list_users(db: Connection) -> list[dict[str, Any]]:
    rows = db.execute(
        "SELECT name, admin, created_at, service, "
        "(SELECT count(*) FROM api_keys WHERE user = users.key AND expires_at IS NULL) AS keys, "
        "(SELECT group_concat(team, '/') FROM members WHERE user = users.key) AS teams "
        "FROM users WHERE removed_at IS NULL ORDER BY name"
    )
    return [
        # Names hold no slash.
        {
            **row,
            "admin": bool(row["admin"]),
            "teams": sorted(filter(None, (row["teams"] or "").split("/"))),
        }
        for row in map(dict, rows)
    ]


def add_key(db: Connection, user: str, key: str, wanted: Wanted, now: float) -> dict[str, Any]:
    return api_keys.add(db, find_user(db, user)["key"], key, wanted, now)


def revoke_key(db: Connection, user: str, key: str, own_hash: str) -> None:
    """`key` is the id of a key; `own_hash` is that of the state folder's own, which stays."""
    owner = find_user(db, user)
    if api_keys.key_id(own_hash) == key:
        raise Needed(
            "this is the key in server.json, by which the state folder's own commands come in"
        )
    if not api_keys.revoke(db, owner["key"], key):
        raise Missing(f"{user!r} has no key {key!r}")


def revoke_kind(db: Connection, user: str, kind: str) -> int:
    return api_keys.revoke_kind(db, find_user(db, user)["key"], kind)


def add_team(db: Connection, name: str, maker: str, now: float, *, adopt: bool) -> None:
    """`adopt`, for the admin: the team may have runs that its entity has already."""
    check_entity(name)
    if not adopt and is_taken(db, name):
        # Names are unique, so this much is told; not whether a user, a team or runs have it.
        raise Taken(f"the name {name!r} is taken")
    _refuse_team(db, name)
    if exists(db, "SELECT 1 FROM users WHERE name = ?", (name,)):
        raise Taken(f"{name!r} is a user's name")
    db.execute("INSERT INTO teams (name, created_at) VALUES (?, ?)", (name, now))
    add_member(db, name, maker)


def remove_team(db: Connection, name: str) -> None:
    if not db.execute("DELETE FROM teams WHERE name = ?", (name,)).rowcount:
        raise Missing(f"there is no team {name!r}")


def list_teams(db: Connection) -> list[dict[str, Any]]:
    members: dict[str, list[str]] = defaultdict(list)
    invited: dict[str, list[str]] = defaultdict(list)
    for row in db.execute(
        "SELECT team, name FROM members JOIN users ON users.key = members.user ORDER BY name"
    ):
        members[row["team"]].append(row["name"])
    for row in db.execute("SELECT team, user FROM invitations ORDER BY user"):
        invited[row["team"]].append(row["user"])
    rows = db.execute("SELECT name, created_at FROM teams ORDER BY name")
    return [
        {**dict(row), "members": members[row["name"]], "invited": invited[row["name"]]}
        for row in rows
    ]


def members_of(db: Connection, team: str) -> list[str] | None:
    """The names of a team's members; None where there is no such team."""
    if not _is_team(db, team):
        return None
    return fetch_column(
        db,
        "SELECT name FROM members JOIN users ON users.key = members.user WHERE team = ?",
        (team,),
    )


def teams_of(db: Connection, user: int) -> list[str]:
    return fetch_column(db, "SELECT team FROM members WHERE user = ?", (user,))


def is_taken(db: Connection, name: str) -> bool:
    """Whether an entity of that name is anybody's, or has runs."""
    is_user = exists(db, "SELECT 1 FROM users WHERE name = ?", (name,))
    return is_user or _is_team(db, name) or _has_projects(db, name)


def add_member(db: Connection, team: str, user: str) -> None:
    if not _is_team(db, team):
        raise Missing(f"there is no team {team!r}")
    db.execute(
        "INSERT INTO members (team, user) VALUES (?, ?) ON CONFLICT DO NOTHING",
        (team, find_user(db, user)["key"]),
    )


def remove_member(db: Connection, team: str, user: str) -> bool:
    """Whether `user` was in the team. The invitations that they wrote end with it."""
    row = db.execute(
        "SELECT key FROM users JOIN members ON members.user = users.key "
        "WHERE members.team = ? AND users.name = ?",
        (team, user),
    ).fetchone()
    if row is None:
        return False
    db.execute("DELETE FROM members WHERE team = ? AND user = ?", (team, row["key"]))
    db.execute("DELETE FROM invitations WHERE team = ? AND invited_by = ?", (team, row["key"]))
    return True


def check_entity(name: str) -> None:
    """A name for a user or a team: part of addresses, and of what people type."""
    check_project(name)
    if name in _RESERVED or not name.isprintable() or name != name.strip():
        raise BadName(f"{name[:200]!r} cannot be the name of a user or a team")


def _is_team(db: Connection, name: str) -> bool:
    return exists(db, "SELECT 1 FROM teams WHERE name = ?", (name,))


def _refuse_team(db: Connection, name: str) -> None:
    if _is_team(db, name):
        raise Taken(f"there already is a team {name!r}")


def _has_projects(db: Connection, entity: str) -> bool:
    return exists(db, "SELECT 1 FROM projects WHERE entity = ? LIMIT 1", (entity,))
