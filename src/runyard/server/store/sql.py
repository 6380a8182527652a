"""What every statement of ours shares: the type of a row, and the builder of `UPDATE`."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from sqlite3 import Connection
from typing import Any

Row = sqlite3.Row


def update(
    db: Connection, table: str, where: Mapping[str, Any], columns: Mapping[str, Any]
) -> None:
    """Set `columns` of the rows of `table` that have the values in `where`.

    The names are ours, never a client's.
    """
    settings = ", ".join(f'"{name}" = ?' for name in columns)
    conditions = " AND ".join(f'"{name}" = ?' for name in where)
    db.execute(
        f'UPDATE "{table}" SET {settings} WHERE {conditions}',  # noqa: S608
        [*columns.values(), *where.values()],
    )
