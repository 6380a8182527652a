"""Who may read and write what: every rule on people, in one place.

Runs belong to an entity: a user's own, which has the user's name, or a team's. What is not yours
is to you as if it did not exist. The admin, to whom the state folder belongs, reads everything and
has what nobody owns, but does not write into what is somebody else's.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

# What a key opens: everything that its owner may, or the owner's runs (`http/scopes.py`).
ALL, RUNS = "all", "runs"


@dataclass(frozen=True)
class Entities:
    """Entities by name: those that are named, or all but them."""

    names: frozenset[str]
    is_all_but: bool = False

    def __contains__(self, entity: object) -> bool:
        return (entity in self.names) is not self.is_all_but


@dataclass(frozen=True)
class Caller:
    """The user behind a key, and what that key is for."""

    key: int
    name: str
    admin: bool = False
    """Never with a key that is for runs only, whoever owns it."""
    teams: frozenset[str] = frozenset()
    key_id: str = ""
    scope: str = ALL
    others: frozenset[str] | None = None
    """With the state folder owner's key for runs: the entities that are somebody else's. What
    nobody owns is the owner's."""


def may_read(caller: Caller, entity: str) -> bool:
    entities = readable(caller)
    return entities is None or entity in entities


def may_write(caller: Caller, entity: str, owned: Collection[str]) -> bool:
    """`owned` are the entities that belong to a user, past ones included, or to a team."""
    if entity == caller.name or entity in caller.teams:
        return True
    # A program may name any entity where one person is alone with their server.
    return (caller.admin or caller.others is not None) and entity not in owned


def readable(caller: Caller) -> Entities | None:
    """The entities that a caller may read; None for all there are."""
    if caller.admin:
        return None
    if caller.others is not None:
        return Entities(caller.others, is_all_but=True)
    return Entities(caller.teams | {caller.name})


def may_see(caller: Caller, other: str, teams: Collection[str]) -> bool:
    """Whether a caller may know of another user, who is in those teams."""
    if caller.scope != ALL:
        return caller.name == other
    return caller.admin or caller.name == other or not caller.teams.isdisjoint(teams)


def known_teams(caller: Caller, other: str, teams: Collection[str]) -> list[str]:
    """Those of another user's teams that a caller may know of."""
    is_all = caller.admin or caller.name == other
    return sorted(teams if is_all else caller.teams.intersection(teams))


def may_manage_team(caller: Caller, team: str) -> bool:
    """Members are equals: each may invite others, and give the team up."""
    return caller.scope == ALL and (caller.admin or team in caller.teams)


def may_put_into_teams(caller: Caller) -> bool:
    """Whether whom the caller names is in a team without being asked."""
    return caller.admin


def may_manage_keys(caller: Caller, owner: str) -> bool:
    return caller.scope == ALL and (caller.admin or caller.name == owner)
