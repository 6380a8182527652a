"""Every field of the GraphQL API, through every field that leads to it, as every kind of person.

The fields come from the server's own resolvers; what nobody classified in `fields_table` fails.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from runyard.server import wandb_api
from runyard.server.wandb_api.fields import refusals
from tests.doors import markers
from tests.doors.attempts import (
    ADMIN,
    ADMINS_KEY_FOR_RUNS,
    COLLEAGUE,
    FORMER_MEMBER,
    OWNER,
    TEAM_MATE,
    Actor,
    must_be_empty,
)
from tests.doors.fields_table import ARGUMENTS, LIST_SHAPES, PAGING, TYPES
from tests.doors.mutations_table import MUTATIONS
from tests.doors.trying_fields import arguments_in, mutation_faults, walk_of, walked
from tests.doors.walk import Arguments, Walk, expand
from tests.doors.world import GHOST, World

_ADD = "Decide who may read it and add it to tests/doors/fields_table.py"
# Mappings in the code that are no fields: inputs, filters, columns of the database.
_NO_FIELDS = frozenset(
    {
        "filters order",  # sweeps: what the list of runs is asked
        "sweep",
        "description metadata tags ttl",  # artifact_changes: columns
        "description name",
        "destinationArtifactTypeName",
        "filters",
        "after",
        "t",  # runs: what a client keeps in its config, in JSON
        "mutation query",
        "logs run_id type",  # agents: commands, in JSON
        "args logs program run_id type",
    }
)


@pytest.fixture(scope="module")
def arguments(world: World) -> Mapping[str, Sequence[Arguments]]:
    return arguments_in(world)


@pytest.fixture(scope="module")
def of_admin(world: World, arguments: Mapping[str, Sequence[Arguments]]) -> Walk:
    return walked(world, ADMIN, arguments)


def test_every_type_and_field_is_classified(of_admin: Walk) -> None:
    strangers = []
    for kind, fields in sorted(of_admin.types.items()):
        if " ".join(sorted(fields)) in LIST_SHAPES:
            continue
        known = TYPES[kind][1].split() if kind in TYPES else []
        strangers += [f"{kind}.{name}" for name in sorted(fields - {"__typename", *known})]
    assert not strangers, f"{strangers}: who may read these fields? {_ADD}"
    print(f"\n{len(of_admin.types)} types, {sum(map(len, of_admin.types.values()))} fields")


def test_every_argument_is_tried(of_admin: Walk) -> None:
    strangers = [
        f"{field}({name}: ...)"
        for field, names in sorted(of_admin.asked.items())
        for name in sorted(
            names - PAGING - {one for given in ARGUMENTS.get(field, ()) for one in given}
        )
    ]
    assert not strangers, f"{strangers}: with which values is it tried? {_ADD}, to ARGUMENTS"


@pytest.mark.parametrize(
    "actor",
    [COLLEAGUE, ADMINS_KEY_FOR_RUNS, TEAM_MATE, FORMER_MEMBER],
    ids=lambda actor: actor.label,
)
def test_nobody_reads_what_is_not_theirs(
    world: World, arguments: Mapping[str, Sequence[Arguments]], actor: Actor
) -> None:
    walk = walked(world, actor, arguments)
    must_be_empty(walk.leaks)
    # Addresses are followed: the bytes of files are secrets too.
    for url in sorted(walk.urls):
        answer = world.client.request("GET", url, key=actor.key_in(world))
        assert [
            text
            for text, audience in markers.find(answer.body).items()
            if not actor.may_see(audience)
        ] == [], url
    print(f"\n{actor.label}: {walk.calls} calls, {len(walk.urls)} addresses")


def test_the_owner_reads_all_of_it(
    world: World, arguments: Mapping[str, Sequence[Arguments]]
) -> None:
    """Else the walk of the others would show nothing."""
    walk = walked(world, OWNER, arguments)
    assert walk.leaks == []
    counts = {name: [*walk.sights.values()].count(name) for name in ("bob", "lab", "eve", "tom")}
    assert counts["bob"] > 50, counts
    assert counts["lab"] > 50, counts
    assert (counts["eve"], counts["tom"]) == (0, 0)


ACTORS = [COLLEAGUE, ADMINS_KEY_FOR_RUNS, TEAM_MATE, FORMER_MEMBER, ADMIN]


def test_every_mutation_is_classified(of_admin: Walk) -> None:
    mutations = set(of_admin.roots["mutation"]("")) - {"__typename", *refusals.MUTATIONS}
    assert mutations == set(MUTATIONS), (
        "what does it change, and whose is that? See tests/doors/mutations_table.py"
    )
    print(f"\n{len(mutations)} mutations")


@pytest.mark.parametrize("actor", ACTORS, ids=lambda actor: actor.label)
def test_nobody_changes_what_is_not_theirs(world: World, actor: Actor) -> None:
    """With ids and names of their own and of others, mixed in every way."""
    faults, count = mutation_faults(world, actor)
    must_be_empty(faults)
    print(f"\n{actor.label}: {count} mutations tried")


@pytest.fixture(scope="module")
def of_owner(world: World) -> Walk:
    """The owner's changes of what is theirs: each input is one that does something."""
    walk = walk_of(world, OWNER, {})
    walk.shapes.add(frozenset(walk.roots["mutation"]("")))
    for name, mutation in sorted(MUTATIONS.items(), key=lambda item: item[1].ends):
        refusals = []
        for template in mutation.inputs:
            for audience in ("bob", "lab"):
                given = expand(template, {**GHOST, **world.belongings[audience]})
                refusals += world.client.together(walk.mutate(name, given))
        assert None in refusals, (name, refusals)
    return walk


def test_no_field_in_the_code_was_passed_over(of_admin: Walk, of_owner: Walk) -> None:
    """Each mapping with fields in the code is one that the walk has gone through."""
    missed = [
        f"{path.name}:{line} {' '.join(sorted(keys))}"
        for path in sorted(Path(wandb_api.__file__).parent.glob("*/*.py"))
        for line, keys in _mappings(ast.parse(path.read_text()))
        if " ".join(sorted(keys)) not in _NO_FIELDS
        and not any(keys <= shape for shape in of_admin.shapes | of_owner.shapes)
    ]
    must_be_empty(f"{place}: the walk never came there. {_ADD}" for place in missed)


def _mappings(tree: ast.AST) -> Iterator[tuple[int, frozenset[str]]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for inner in ast.walk(node):
                if isinstance(inner, ast.Dict):
                    keys = [key.value for key in inner.keys if isinstance(key, ast.Constant)]
                    yield inner.lineno, frozenset(key for key in keys if isinstance(key, str))
