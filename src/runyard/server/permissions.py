"""Who may read and write what: every rule on people, in one place.

Runs belong to an entity: a user's own, which has the user's name, or a team's. What is not yours
is to you as if it did not exist. The admin, to whom the state folder belongs, reads everything and
has what nobody owns, but does not write into what is somebody else's.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True)
class Caller:
    """The user behind a key."""

    key: int
    name: str
    admin: bool = False
    teams: frozenset[str] = frozenset()
    key_id: str = ""


def may_read(caller: Caller, entity: str) -> bool:
    entities = readable(caller)
    return entities is None or entity in entities


def may_write(caller: Caller, entity: str, owned: Collection[str]) -> bool:
    """`owned` are the entities that belong to a user, past ones included, or to a team."""
    if entity == caller.name or entity in caller.teams:
        return True
    # A program may name any entity where one person is alone with their server.
    return caller.admin and entity not in owned


def readable(caller: Caller) -> frozenset[str] | None:
    """The entities that a caller may read; None for all there are."""
    return None if caller.admin else caller.teams | {caller.name}


def may_see(caller: Caller, other: str, teams: Collection[str]) -> bool:
    """Whether a caller may know of another user, who is in those teams."""
    return caller.admin or caller.name == other or not caller.teams.isdisjoint(teams)


def known_teams(caller: Caller, other: str, teams: Collection[str]) -> list[str]:
    """Those of another user's teams that a caller may know of."""
    is_all = caller.admin or caller.name == other
    return sorted(teams if is_all else caller.teams.intersection(teams))


def may_manage_team(caller: Caller, team: str) -> bool:
    """Members are equals: each may invite others, and give the team up."""
    return caller.admin or team in caller.teams


def may_put_into_teams(caller: Caller) -> bool:
    """Whether whom the caller names is in a team without being asked."""
    return caller.admin


def may_manage_keys(caller: Caller, owner: str) -> bool:
    return caller.admin or caller.name == owner
