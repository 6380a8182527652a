"""Every route of the server, as every kind of actor, with everybody's things.

The routes come from the application; what nobody classified in `routes_table` fails.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from runyard.server.scopes import RUNS_ROUTES
from tests.doors import markers
from tests.doors.attempts import (
    ADMIN,
    ADMINS_KEY_FOR_RUNS,
    COLLEAGUE,
    FORMER_MEMBER,
    KEY_FOR_RUNS,
    TEAM_MATE,
    Actor,
    Guard,
    alike,
    attempts,
    must_be_empty,
    secrets_in,
)
from tests.doors.routes_table import ADMIN as ADMINS
from tests.doors.routes_table import KEY, OPEN, READS, ROUTES, SIGNED, TEAM, WRITES, Door, addresses
from tests.doors.walk import expand
from tests.doors.world import GHOST, World
from tests.server.asgi import Answer, basic

NOBODY = Actor("no key", None)
REVOKED = Actor("revoked key", None, key="revoked")
EXPIRED = Actor("expired key", None, key="expired")
ON_A_PAGE = Actor("colleague on the page", "eve", ("eve",))


def routes_of(app: Starlette) -> set[str]:
    return {
        f"{method} {route.path}"
        for route in app.routes
        if isinstance(route, Route)
        for method in (route.methods or set()) - {"HEAD"}
    }


def test_every_route_is_classified(world: World) -> None:
    app: Any = world.client._app
    routes = routes_of(app)
    strangers = sorted(routes - ROUTES.keys())
    assert not strangers, f"{strangers}: who may come in? Add a row to tests/doors/routes_table.py"
    assert sorted(ROUTES.keys() - routes) == [], "these routes are gone: take out their rows"
    assert len(app.routes) == len([route for route in app.routes if isinstance(route, Route)])
    counts = {who: sum(door.who == who for door in ROUTES.values()) for who in (OPEN, SIGNED)}
    print(f"\n{len(routes)} routes, of which {counts}")


def cookie(world: World, person: str) -> str:
    """A session of the page, as a browser gets it."""
    code = world.people[person].post("/api/login/codes", {}).json()["code"]
    body = json.dumps({"code": code}).encode()
    made = world.client.request("POST", "/api/login", [body], key=None, headers={"x-runyard": "1"})
    assert made.status == 200, made.text
    return made.headers["set-cookie"].partition(";")[0]


def caller(world: World, actor: Actor) -> Callable[[str, str, Any], Answer]:
    headers: Mapping[str, str] = {}
    if actor is ON_A_PAGE:
        headers = {"cookie": cookie(world, "eve"), "x-runyard": "1"}
    elif (key := actor.key_in(world)) is not None:
        headers = {"authorization": basic(key)}

    def call(method: str, path: str, body: Any) -> Answer:
        content = (
            body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        )
        return world.client.request(method, path, [content], key=None, headers=headers)

    return call


def requests(route: str, door: Door) -> list[dict[str, Any]]:
    """Templates: where, and with which body."""
    method = route.partition(" ")[0]
    return [
        {"method": method, "path": path, "body": body}
        for path in addresses(route, door)
        for body in door.bodies or [None]
    ]


@pytest.mark.parametrize(
    "actor",
    [
        NOBODY,
        REVOKED,
        EXPIRED,
        COLLEAGUE,
        ON_A_PAGE,
        KEY_FOR_RUNS,
        ADMINS_KEY_FOR_RUNS,
        TEAM_MATE,
        FORMER_MEMBER,
        ADMIN,
    ],
    ids=lambda actor: actor.label,
)
def test_nobody_comes_in_where_they_may_not(world: World, actor: Actor) -> None:
    call, watch, guard = caller(world, actor), Watch(world, actor), Guard(world, actor)
    faults, count = list[str](), 0
    absent_answers: dict[str, Answer] = {}
    said = world.said.setdefault(str(actor.person), set())

    def send(given: dict[str, Any], door: Door) -> Answer:
        nonlocal count
        count += 1
        answer = call(given["method"], given["path"], given["body"])
        # What was sent once, and kept, may come back with a later answer.
        said.update(markers.find(json.dumps(given, default=str).encode()))
        what = f"{actor.label}: {given['method']} {given['path']} {given['body'] or ''}"
        head = json.dumps(dict(answer.headers)).encode()
        faults.extend(
            f"{what} shows {text}" for text in secrets_in(actor, head + answer.body, sorted(said))
        )
        of_admin = door.admin_changes if actor is ADMIN else ""
        faults.extend(f"{what} changes {rows}" for rows in guard.look(of_admin))
        if answer.status >= 500 and answer.status != 503:  # "Not yet", to a client of a run.
            faults.append(f"{what} answers {answer.status}")
        return answer

    for route, door in ROUTES.items():
        if door.who == SIGNED:
            continue
        for template in requests(route, door):
            for attempt in attempts(template, actor, world, door.free):
                if door.ends and (attempt.ghost is None or may_end(actor, door)):
                    continue  # What is theirs they may end.
                given = expand(template, attempt.things)
                if actor is ADMIN and door.who == ADMINS:
                    continue
                answer = send(given, door)
                wanted = _wanted(actor, route, door)
                if wanted is not None and answer.status != wanted:
                    faults.append(f"{actor.label}: {given} answers {answer.status}, not {wanted}")
                if wanted is not None or attempt.ghost is None or door.tells or actor.has_ownerless:
                    continue
                absent = expand(template, attempt.ghost)
                if str(absent) not in absent_answers:
                    absent_answers[str(absent)] = send(absent, door)
                other = absent_answers[str(absent)]
                told = alike(answer.body.decode("latin-1"), attempt.things, attempt.ghost)
                if (answer.status, told) != (
                    other.status,
                    alike(other.body.decode("latin-1"), {}, {}),
                ):
                    faults.append(
                        f"{actor.label}: {given} tells: {answer.status} {told[:200]!r}, "
                        f"not {other.status} {other.text[:200]!r}"
                    )
    faults += watch.look()
    must_be_empty(faults)
    print(f"\n{actor.label}: {count} requests")


def may_end(actor: Actor, door: Door) -> bool:
    """The admin removes people, keys and teams."""
    return actor is ADMIN and door.who in (ADMINS, KEY, TEAM)


def _wanted(actor: Actor, route: str, door: Door) -> int | None:
    """The status that a whole class of doors answers with."""
    if door.who == OPEN:
        return None
    if actor.person is None:
        return 401
    is_for_runs = actor in (KEY_FOR_RUNS, ADMINS_KEY_FOR_RUNS)
    if door.who == ADMINS or (is_for_runs and tuple(route.split()) not in RUNS_ROUTES):
        return 403
    return None


def test_a_key_for_runs_opens_nothing_of_people() -> None:
    """What such a key opens is a table of the server's own; these classes are not in it."""
    opened = {route for route in ROUTES if tuple(route.split()) in RUNS_ROUTES}
    assert {ROUTES[route].who for route in opened} <= {KEY, READS, WRITES}
    assert not [route for route in opened if "/teams" in route or "/users" in route]
    assert not [route for route in opened if "/keys" in route or "/login" in route]


class Watch:
    """What agents of others are told does not change, whatever the actor does."""

    def __init__(self, world: World, actor: Actor) -> None:
        self._world = world
        self._audiences = [name for name in ("bob", "lab") if name not in actor.owns]
        self._before = self._told()

    def _told(self) -> dict[str, str]:
        bob = self._world.people["bob"]
        return {
            name: bob.post(
                f"/api/agents/{self._world.belongings[name]['agent']}/claim", {"token": "held0"}
            ).json()["do"]
            for name in self._audiences
        }

    def look(self) -> list[str]:
        after = self._told()
        return [
            f"the agent of {name} is told {after[name]}"
            for name in after
            if after[name] != self._before[name]
        ]


def test_addresses_end_with_the_right_to_them(world: World) -> None:
    for method, path in world.stale:
        answer = world.client.request(method, path, [b"new"], key=None)
        assert answer.status in (403, 404), (method, path, answer.status)
        assert markers.find(answer.body) == {}
    good = [
        world.client.request(m, path, key=None).status for m, path in world.addresses if m == "GET"
    ]
    assert set(good) == {200}


def test_the_page_of_others_changes_nothing(world: World) -> None:
    """The owner's cookie alone, as a page from another port would send it."""
    guard = Guard(world, NOBODY)
    headers = {"cookie": cookie(world, "bob")}
    guard.look()
    for route, door in ROUTES.items():
        method = route.partition(" ")[0]
        if method == "GET" or door.who in (OPEN, SIGNED):
            continue
        for template in requests(route, door):
            given = expand(template, {**GHOST, **world.belongings["bob"]})
            answer = world.client.request(method, given["path"], [b"{}"], key=None, headers=headers)
            assert answer.status == 403, (given, answer.status)
    assert guard.look() == []


def test_the_owner_comes_in_everywhere(world: World) -> None:
    """Else the refusals of the others would show nothing: each request does something."""
    for route, door in sorted(ROUTES.items(), key=lambda item: item[1].ends):
        if door.who in (OPEN, SIGNED) or ("{rest:path}" in route and door.who == KEY):
            continue
        person = "ada" if door.who == ADMINS else "bob"
        call = caller(world, Actor("owner", person))
        answers = [
            call(given["method"], given["path"], given["body"])
            for template in requests(route, door)
            for audience in ("bob", "lab")
            for given in [expand(template, {**GHOST, **world.belongings[audience]})]
        ]
        best = min(answer.status for answer in answers)
        assert best == 200, (route, [(answer.status, answer.text[:200]) for answer in answers])
        if door.who in (READS,) and not door.silent:
            seen = {
                audience for answer in answers for audience in markers.find(answer.body).values()
            }
            assert {"bob", "lab"} & seen, route
