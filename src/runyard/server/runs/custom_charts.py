"""Charts that people define themselves, in Vega or Vega-Lite, for tables of their runs."""

from __future__ import annotations

import json
from sqlite3 import Connection
from typing import Any

from runyard.server.people.permissions import Caller, may_read
from runyard.server.store.names import check_project
from runyard.server.store.sql import fetch_one

PRIVATE, PUBLIC = "PRIVATE", "PUBLIC"
"""Who may draw with it: those who may read what belongs to its entity, or everybody here."""
# The largest example of Vega's own has a tenth of this, without its data.
_LONGEST = 500_000


class BadChart(ValueError):
    """A definition that no chart can be drawn from."""


def put(
    db: Connection, entity: str, name: str, *, title: str, access: str, spec: str, now: float
) -> None:
    """Define a chart, in the place of one of the same name."""
    check_project(name)
    if access not in (PRIVATE, PUBLIC):
        raise BadChart(f"access is {access[:20]!r}: choose private or public")
    if len(spec) > _LONGEST:
        raise BadChart(
            f"the chart has {len(spec):,} characters, and {_LONGEST:,} are allowed: "
            "its data belong into the table"
        )
    try:
        is_object = isinstance(json.loads(spec), dict)
    except (ValueError, RecursionError) as error:
        raise BadChart(f"the chart is no JSON: {error}") from error
    if not is_object:
        raise BadChart("the chart is no object of Vega's: it must begin with {")
    db.execute(
        "INSERT INTO custom_charts (entity, name, title, access, spec, created_at) "
        "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
        "title = excluded.title, access = excluded.access, spec = excluded.spec",
        (entity, name, title, access, spec, now),
    )


def find(db: Connection, address: str, caller: Caller) -> dict[str, Any] | None:
    """The chart of an address ENTITY/NAME; None if there is none that the caller may see."""
    entity, _, name = address.partition("/")
    row = fetch_one(db, "SELECT * FROM custom_charts WHERE entity = ? AND name = ?", (entity, name))
    if row is None or not (row["access"] == PUBLIC or may_read(caller, entity)):
        return None
    spec: dict[str, Any] = json.loads(row["spec"])
    return spec
