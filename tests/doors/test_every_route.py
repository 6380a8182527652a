"""Every route of the server, as every kind of actor, with everybody's things.

The routes come from the application; what nobody classified in `routes_table` fails.
"""

from __future__ import annotations

from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Route

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
    must_be_empty,
)
from tests.doors.routes_table import ADMIN as ADMINS
from tests.doors.routes_table import KEY, OPEN, READS, ROUTES, SIGNED, WRITES
from tests.doors.trying_routes import (
    EXPIRED,
    NOBODY,
    ON_A_PAGE,
    REVOKED,
    caller,
    requests,
    route_faults,
    routes_for_runs,
)
from tests.doors.walk import expand
from tests.doors.world import GHOST, World
from tests.server.browsers import Visitor


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
    faults, count = route_faults(world, actor)
    must_be_empty(faults)
    print(f"\n{actor.label}: {count} requests")


def test_a_key_for_runs_opens_nothing_of_people(world: World) -> None:
    """What such a key opens the server's own declarations say; these classes are not among it."""
    opened = routes_for_runs(world) & ROUTES.keys()
    assert {ROUTES[route].who for route in opened} <= {KEY, READS, WRITES}
    closed = ("/teams", "/users", "/api/keys", "/login", "/server")
    assert not [route for route in opened if any(word in route for word in closed)]


def test_addresses_end_with_the_right_to_them(world: World) -> None:
    for method, path in world.stale:
        answer = world.client.request(method, path, [b"new"], key=None)
        assert answer.status in (403, 404), (method, path, answer.status)
        assert markers.find(answer.body) == {}
    good = [
        world.client.request(m, path, key=None).status for m, path in world.addresses if m == "GET"
    ]
    assert set(good) == {200}


def test_a_cookie_alone_opens_nothing(world: World) -> None:
    """Another user's program gets it from the owner's browser, on another port."""
    guard = Guard(world, NOBODY)
    headers = {"cookie": Visitor(world.client, world.people["bob"].key).cookie, "x-runyard": "page"}
    guard.look()
    for route, door in ROUTES.items():
        method = route.partition(" ")[0]
        if door.who in (OPEN, SIGNED):
            continue
        for template in requests(route, door):
            given = expand(template, {**GHOST, **world.belongings["bob"]})
            answer = world.client.request(method, given["path"], [b"{}"], key=None, headers=headers)
            assert answer.status == 401, (given, answer.status)
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
