"""People, keys, sessions and teams, by the names that a person types."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from runyard.client.api import Api
from runyard.client.http import Connection
from runyard.client.keys import find_key
from runyard.client.people import PeopleApi
from runyard.client.wandb_server import target_url
from runyard.errors import NotFoundError
from runyard.shapes.people import Key, Session

Record = TypeVar("Record", Key, Session)


def revoke_key(people: PeopleApi, words: str, user: str | None = None) -> Key:
    """By the key's id, the beginning of it, or its label."""
    keys = [key for key in people.list_keys() if user in (None, key["user"])]
    matching = [key for key in keys if key["id"].startswith(words) or key["label"] == words]
    key = _only(matching, "key", words, "`runyard users keys list` names them")
    people.revoke_key(key)
    return key


def end_session(people: PeopleApi, words: str) -> Session:
    """By the session's id, or the beginning of it."""
    matching = [session for session in people.sessions() if session["id"].startswith(words)]
    session = _only(matching, "session", words, "`runyard users sessions` names them")
    people.end_session(session)
    return session


def people_at(host: str | None, connect: Callable[[], Api]) -> PeopleApi:
    """Of a server of somebody else's, by the key that is stored for it; without one, of ours."""
    if host is None:
        return connect().people
    url = target_url(host)
    return Api(Connection(url, find_key(url, os.environ, Path.cwd()).key)).people


def change_team(people: PeopleApi, action: str, team: str, users: Sequence[str]) -> None:
    """add, remove, join or leave; anything else changes nothing."""
    if action == "add":
        add_to_team(people, team, users)
    elif action == "remove":
        remove_from_team(people, team, users)
    elif action == "join":
        people.add_member(team, people.me()["name"])
    elif action == "leave":
        people.remove_member(team, people.me()["name"])


def add_to_team(people: PeopleApi, team: str, users: Sequence[str]) -> None:
    """Make a team, or invite more people to it."""
    if team not in {known["name"] for known in people.teams()}:
        people.add_team(team, list(users))
        return
    for user in users:
        people.add_member(team, user)


def remove_from_team(people: PeopleApi, team: str, users: Sequence[str]) -> None:
    """Members or invitations, or without any the whole team."""
    if team not in {known["name"] for known in people.teams()}:
        raise NotFoundError(
            f"there is no team {team!r}", mend="`runyard users teams list` names them"
        )
    for user in users:
        people.remove_member(team, user)
    if not users:
        people.remove_team(team)


def _only(matching: Sequence[Record], kind: str, words: str, mend: str) -> Record:
    if len(matching) != 1:
        which = f"no {kind}" if not matching else f"more than one {kind}"
        raise NotFoundError(f"{which} is called {words!r}", mend=mend)
    return matching[0]
