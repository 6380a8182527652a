"""Trying the server's routes as one actor: what is answered, and what is changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from runyard.server.http.routes import Endpoint
from runyard.server.people.permissions import RUNS
from tests.doors import markers
from tests.doors.attempts import (
    ADMIN,
    ADMINS_KEY_FOR_RUNS,
    KEY_FOR_RUNS,
    Actor,
    Guard,
    alike,
    attempts,
    secrets_in,
)
from tests.doors.routes_table import ADMIN as ADMINS
from tests.doors.routes_table import KEY, OPEN, ROUTES, SIGNED, TEAM, Door, addresses
from tests.doors.walk import expand
from tests.doors.world import World
from tests.server.asgi import Answer, basic
from tests.server.browsers import Visitor

NOBODY = Actor("no key", None)
REVOKED = Actor("revoked key", None, key="revoked")
EXPIRED = Actor("expired key", None, key="expired")
ON_A_PAGE = Actor("colleague on the page", "eve", ("eve",))


def caller(world: World, actor: Actor) -> Callable[[str, str, Any], Answer]:
    headers: Mapping[str, str] = {}
    if actor is ON_A_PAGE:
        page = Visitor(world.client, world.people["eve"].key)
        headers = {"cookie": page.cookie, "x-runyard": page.proof}
    elif (key := actor.key_in(world)) is not None:
        headers = {"authorization": basic(key)}

    def call(method: str, path: str, body: Any) -> Answer:
        content = (
            body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        )
        return world.client.request(method, path, [content], key=None, headers=headers)

    return call


def routes_for_runs(world: World) -> set[str]:
    """What a key for runs opens, as the server declares it."""
    app: Any = world.client._app
    return {
        f"{method} {route.path}"
        for route in app.routes
        if isinstance(route, Endpoint) and route.scope == RUNS
        for method in (route.methods or set()) - {"HEAD"}
    }


def requests(route: str, door: Door) -> list[dict[str, Any]]:
    """Templates: where, and with which body."""
    method = route.partition(" ")[0]
    return [
        {"method": method, "path": path, "body": body}
        for path in addresses(route, door)
        for body in door.bodies or [None]
    ]


def route_faults(
    world: World, actor: Actor, routes: Iterable[str] = ROUTES
) -> tuple[list[str], int]:
    """What goes wrong when an actor tries routes, and how many requests that took."""
    call, watch, guard = caller(world, actor), Watch(world, actor), Guard(world, actor)
    opened = routes_for_runs(world)
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

    for route in routes:
        door = ROUTES[route]
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
                wanted = _wanted(actor, route in opened, door)
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
    return [*faults, *watch.look()], count


def may_end(actor: Actor, door: Door) -> bool:
    """The admin removes people, keys and teams."""
    return actor is ADMIN and door.who in (ADMINS, KEY, TEAM)


def _wanted(actor: Actor, is_open_to_runs: bool, door: Door) -> int | None:
    """The status that a whole class of doors answers with."""
    if door.who == OPEN:
        return None
    if actor.person is None:
        return 401
    is_for_runs = actor in (KEY_FOR_RUNS, ADMINS_KEY_FOR_RUNS)
    if door.who == ADMINS or (is_for_runs and not is_open_to_runs):
        return 403
    return None


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
