"""Users, keys, teams and logins, as the server's API answers."""

from __future__ import annotations

from typing import TypedDict


class LoginCode(TypedDict):
    """Logs one browser in, once, within `seconds`."""

    code: str
    seconds: int


class Invitation(TypedDict):
    """Joining the team accepts it; see `PeopleApi.add_member`."""

    team: str
    invited_by: str
    created_at: float


class Me(TypedDict):
    """Whose key this is."""

    name: str
    admin: bool
    teams: list[str]
    invitations: list[Invitation]


class User(TypedDict):
    name: str
    admin: bool
    created_at: float
    keys: int
    teams: list[str]
    service: str | None
    """What a service account is for; None of a person."""


# Kinds of keys that programs hold, and the server made for them.
HANDED_OUT = ("shell", "run", "job")


class Key(TypedDict):
    """A key without the key: that is told once, when it is made.

    `starts`: the first characters of the key, if it is not older than their column.
    """

    id: str
    starts: str | None
    user: str
    label: str
    kind: str
    scope: str
    created_at: float
    expires_at: float | None
    used_at: float | None
    used_from: str | None


class NewKey(Key):
    key: str


class Session(TypedDict):
    """A browser that is logged in to the page."""

    id: str
    user: str
    key: str
    browser: str
    created_at: float
    used_at: float
    used_from: str
    ends_at: float
    current: bool


class Team(TypedDict):
    name: str
    created_at: float
    members: list[str]
    invited: list[str]


class Login(TypedDict):
    """`proof` goes into the header `X-Runyard`; `ticket` replaces it in the address of a file."""

    name: str
    proof: str
    ticket: str
