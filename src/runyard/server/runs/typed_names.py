"""What a person types to mean something: [[ENTITY/]PROJECT/]NAME, as conditions of SQL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from sqlite3 import Connection

from runyard.server.people.permissions import Entities
from runyard.server.store.sql import Row


class Ambiguous(LookupError):
    """More than one thing answers to what was typed; `names` are those that do."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__()
        self.names = names


def in_place(place: str | None) -> tuple[list[str], list[str]]:
    """PROJECT or ENTITY/PROJECT as conditions and their values; of None there are none."""
    if place is None:
        return [], []
    entity, _, project = place.rpartition("/")
    if not entity:
        return ["projects.name = ?"], [project]
    return ["projects.name = ?", "projects.entity = ?"], [project, entity]


def of_entities(entities: Entities | None) -> tuple[list[str], list[str]]:
    """Only what is of these entities; None is all of them."""
    if entities is None:
        return [], []
    test = "NOT IN" if entities.is_all_but else "IN"
    marks = ", ".join("?" * len(entities.names))
    return [f"projects.entity {test} ({marks})"], [*entities.names]


def find_meant(
    db: Connection,
    select: str,
    order: str,
    ways: Iterable[tuple[list[str], list[str]]],
    entities: Entities | None,
) -> Row | None:
    """What the first of several ways to read the words finds, among what these entities have."""
    allowed, owners = of_entities(entities)
    for tests, values in ways:
        rows: list[Row] = db.execute(
            f"{select} WHERE {' AND '.join([*tests, *allowed])} ORDER BY {order} DESC LIMIT 10",
            [*values, *owners],
        ).fetchall()
        if len(rows) > 1:
            raise Ambiguous(_unambiguous_names(rows))
        if rows:
            return rows[0]
    return None


def _unambiguous_names(rows: Sequence[Row]) -> list[str]:
    """What to type for each: with the entity where the project alone leaves a doubt."""
    names = [f"{row['project_name']}/{row['id']}" for row in rows]
    if len(set(names)) == len(names):
        return names
    return [f"{row['entity']}/{name}" for row, name in zip(rows, names, strict=True)]
