"""Trying the GraphQL API as one actor: what is read by it, and what is changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tests.doors.attempts import ADMIN, Actor, Guard, alike, attempts
from tests.doors.fields_table import ARGUMENTS
from tests.doors.mutations_table import MUTATIONS, OWN, TEAM
from tests.doors.walk import Arguments, Walk, expand
from tests.doors.world import GHOST, World


def arguments_in(world: World) -> Mapping[str, Sequence[Arguments]]:
    """With everybody's names and ids, and with some that are nobody's."""
    things = [*world.belongings.values(), GHOST]
    found: dict[str, list[Arguments]] = {}
    for field, templates in ARGUMENTS.items():
        values = [expand(template, of_one) for template in templates for of_one in things]
        found[field] = [value for n, value in enumerate(values) if value not in values[:n]]
    return found


def walk_of(world: World, actor: Actor, arguments: Mapping[str, Sequence[Arguments]]) -> Walk:
    caller = world.tracker.accounts.caller(actor.key_in(world) or "")
    assert caller is not None
    assert actor.person is not None
    return Walk(world, actor.person, caller, arguments)


def walked(world: World, actor: Actor, arguments: Mapping[str, Sequence[Arguments]]) -> Walk:
    walk = walk_of(world, actor, arguments)
    world.client.together(walk.queries())
    return walk


def mutation_faults(
    world: World, actor: Actor, names: Iterable[str] = MUTATIONS
) -> tuple[list[str], int]:
    """What goes wrong when an actor tries mutations, and how often they were tried."""
    walk, guard = walk_of(world, actor, {}), Guard(world, actor)
    faults, count = list[str](), 0
    refusals: dict[str, str | None] = {}

    def call(name: str, given: Arguments) -> str | None:
        nonlocal count
        count += 1
        [refusal] = world.client.together(walk.mutate(name, given))
        return refusal

    for name in names:
        mutation = MUTATIONS[name]
        for template in mutation.inputs:
            for attempt in attempts(template, actor, world, mutation.free):
                is_admins = actor is ADMIN and mutation.changes in (OWN, TEAM)
                if mutation.ends and (attempt.ghost is None or is_admins):
                    continue  # What is theirs they may end.
                given = expand(template, attempt.things)
                refusal = call(name, given)
                if attempt.ghost is None or mutation.tells or actor.has_ownerless:
                    continue
                absent = expand(template, attempt.ghost)
                if (known := f"{name} {absent}") not in refusals:
                    refusals[known] = call(name, absent)
                told = refusal and alike(refusal, attempt.things, attempt.ghost)
                if told != refusals[known]:
                    faults.append(f"{name} {given} tells: {refusal!r}, not {refusals[known]!r}")
            # Not after each call: to read all rows takes longer than any of them.
            faults.extend(f"{name} {template} changes {what}" for what in guard.look())
    return [*walk.leaks, *faults], count
