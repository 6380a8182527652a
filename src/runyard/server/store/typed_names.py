"""What a person types to mean something: [[ENTITY/]PROJECT/]NAME, as conditions of SQL."""

from __future__ import annotations

from collections.abc import Collection, Sequence


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


def of_entities(entities: Collection[str] | None) -> tuple[list[str], list[str]]:
    """Only what is of these entities; None is all of them."""
    if entities is None:
        return [], []
    return [f"projects.entity IN ({', '.join('?' * len(entities))})"], [*entities]
