"""What an actor tries with a template: things of their own, of others, and both mixed."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.doors import markers, rows
from tests.doors.walk import placeholders
from tests.doors.world import GHOST, Belongings, World

# RUNYARD_ALL_DOORS=1: with everybody's things, not those of one owner and one team alone.
IS_WHOLE = bool(os.environ.get("RUNYARD_ALL_DOORS"))
# Values that only mean something together.
_TOGETHER = {"entity": "place", "project": "place"}


@dataclass(frozen=True)
class Actor:
    """Somebody who comes to the doors."""

    label: str
    # Whose eyes: None for who is nobody here.
    person: str | None
    # Audiences whose things are the actor's to write to.
    owns: tuple[str, ...] = ()
    # Tables that are the actor's to change, whosever the rows are.
    manages: frozenset[str] = frozenset()
    # Things of others that the actor sees: (audience, name).
    sees: frozenset[tuple[str, str]] = frozenset()
    # Which key, of `World.keys`; by default, the person's own.
    key: str = ""

    @property
    def has_ownerless(self) -> bool:
        """Whether what nobody owns is the actor's: then a ghost's entity is, too."""
        return self.person in (markers.ADMIN, markers.ADMINS_KEY)

    def key_in(self, world: World) -> str | None:
        if self.key:
            return world.keys[self.key]
        return None if self.person is None else world.people[self.person].key

    def may_see(self, audience: str) -> bool:
        return markers.may_see(self.person, audience)


@dataclass(frozen=True)
class Attempt:
    """Values for a template; `ghost` has things that are not there in place of what is foreign."""

    things: Belongings
    ghost: Belongings | None = None


def attempts(
    template: Any, actor: Actor, world: World, free: tuple[str, ...] = ()
) -> Iterator[Attempt]:
    """All own; then every mixture of own things and one other's, of which some is foreign."""
    names = sorted(set(placeholders(template)) - {*free})
    groups = sorted({_TOGETHER.get(name, name) for name in names})
    own = [world.belongings[audience] for audience in actor.owns]
    others = [
        audience
        for audience in (world.belongings if IS_WHOLE else ("bob", "lab"))
        if audience not in actor.owns
    ]
    for things in own:
        yield Attempt(things)
    for things, other in itertools.product(own or [GHOST], others):
        if actor.has_ownerless:
            subsets: Sequence[tuple[str, ...]] = [tuple(groups)]
        else:
            subsets = [
                some
                for size in range(1, len(groups) + 1)
                for some in itertools.combinations(groups, size)
            ]
        for subset in subsets:
            foreign = [name for name in names if _TOGETHER.get(name, name) in subset]
            if any((other, name) in actor.sees for name in foreign):
                continue
            yield Attempt(
                {
                    **GHOST,
                    **things,
                    **{
                        name: world.belongings[other].get(name, GHOST.get(name)) for name in foreign
                    },
                },
                {**GHOST, **things, **{name: GHOST[name] for name in foreign}},
            )


def alike(answer: str, things: Mapping[str, Any], ghost: Mapping[str, Any]) -> str:
    """An answer with the names and keys of what was asked for replaced by the ghost's."""
    values = {
        str(things[name]): str(ghost[name]) for name in ghost if things.get(name) != ghost[name]
    }
    if values:
        longest = sorted(values, key=len, reverse=True)
        pattern = "|".join(rf"(?<![\w.]){re.escape(value)}(?![\w.])" for value in longest)
        answer = re.sub(pattern, lambda match: values[match[0]], answer)
    # Numbers that go up whoever does something.
    return re.sub(
        r'"(revision|key|agent|heard_at|created_at|updated_at|internalId)":[\d.]+',
        r'"\1":0',
        answer,
    )


class Guard:
    """Notices when a request has changed what the actor may not write to."""

    def __init__(self, world: World, actor: Actor) -> None:
        self._world, self._manages = world, actor.manages
        entities = {audience: things["entity"] for audience, things in world.belongings.items()}
        teams = {world.belongings["bob"]["team"]}
        people = {person.name for person in world.people.values()}
        self._forbidden = ({*entities.values()} | teams | people) - {
            entities[name] for name in actor.owns
        }
        self._rows, self._writes = rows.read(world.tracker), self._count()

    def look(self, but: str = "") -> list[str]:
        """Which tables have rows that were changed, and whose they are."""
        count = self._count()
        if count == self._writes:
            return []
        self._writes = count
        after = rows.read(self._world.tracker)
        found = rows.changed(self._rows, after)
        self._rows = after
        return [
            f"{table} of {entity}"
            for table, entity in sorted(found, key=str)
            if entity in self._forbidden and table not in {*self._manages, but}
        ]

    def _count(self) -> int:
        return sum(times.count for _, times in self._world.tracker.writer_times.items())


def secrets_in(actor: Actor, answer: bytes, request: object) -> list[str]:
    """Secret texts in an answer that the actor may not read, and has not sent."""
    said = markers.find(json.dumps(request, default=str).encode())
    found = markers.find(answer)
    return [
        text for text, audience in found.items() if text not in said and not actor.may_see(audience)
    ]


def must_be_empty(faults: Iterable[str]) -> None:
    """Fails with every fault on a line of its own."""
    found = sorted(set(faults))
    shown = "\n".join(found[:50])
    assert not found, f"{len(found)} faults:\n{shown}"


# The admin sees to people, their keys and teams, and writes into nothing else of theirs.
ADMINISTERS = frozenset({"users", "api_keys", "teams", "members", "invitations", "teams joined"})
OWNER = Actor("owner", "bob", ("bob", "lab"))
COLLEAGUE = Actor("colleague", "eve", ("eve",))
# Of fay's things, the job that works for a sweep of the team's.
_JOB_FOR_TEAM = frozenset({("fay", "job"), ("fay", "job_name")})
TEAM_MATE = Actor("team-mate", "tom", ("tom", "lab"), sees=_JOB_FOR_TEAM)
FORMER_MEMBER = Actor("former member", "fay", ("fay",))
KEY_FOR_RUNS = Actor("key for runs", "eve", ("eve",), key="for runs")
ADMINS_KEY_FOR_RUNS = Actor(
    "admin's key for runs", markers.ADMINS_KEY, ("ada",), key="admin's for runs"
)
ADMIN = Actor("admin", "ada", ("ada",), ADMINISTERS)
