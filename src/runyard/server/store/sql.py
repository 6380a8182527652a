"""What statements share: typed reading of a row, a number or a column; `INSERT` and `UPDATE`."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from sqlite3 import Connection
from typing import Any

Row = sqlite3.Row
Parameters = Sequence[Any] | Mapping[str, Any]


def fetch_one(db: Connection, sql: str, values: Parameters = ()) -> Row | None:
    row: Row | None = db.execute(sql, values).fetchone()
    return row


def fetch_number(db: Connection, sql: str, values: Parameters = ()) -> int:
    return int(db.execute(sql, values).fetchone()[0])


def fetch_column(db: Connection, sql: str, values: Parameters = ()) -> list[Any]:
    """The first column of every row."""
    return [row[0] for row in db.execute(sql, values)]


def exists(db: Connection, sql: str, values: Parameters = ()) -> bool:
    return db.execute(sql, values).fetchone() is not None


def insert(
    db: Connection, table: str, columns: Mapping[str, Any], *, if_missing: bool = False
) -> int:
    """Add a row; its key. `if_missing`: a row with the same unique values stays as it is.

    The names are ours, never a client's.
    """
    names, marks = ", ".join(f'"{name}"' for name in columns), ", ".join("?" * len(columns))
    conflict = " ON CONFLICT DO NOTHING" if if_missing else ""
    statement = f'INSERT INTO "{table}" ({names}) VALUES ({marks}){conflict}'
    return db.execute(statement, list(columns.values())).lastrowid or 0


class Pieces:
    """Many pieces of bytes as one value: what a statement over `json_each` takes them from.

    JSON holds no bytes, and SQLite takes each of a thousand values of its own more slowly.
    """

    def __init__(self) -> None:
        self._pieces = list[bytes]()
        self._size = 0

    def add(self, piece: bytes) -> tuple[int, int]:
        """Where it is: the arguments of `substr`."""
        start = self._size + 1
        self._pieces.append(piece)
        self._size += len(piece)
        return start, len(piece)

    def whole(self) -> bytes:
        return b"".join(self._pieces)


def update(
    db: Connection, table: str, where: Mapping[str, Any], columns: Mapping[str, Any]
) -> None:
    """Set `columns` of the rows of `table` that have the values in `where`. The names are ours."""
    settings = ", ".join(f'"{name}" = ?' for name in columns)
    conditions = " AND ".join(f'"{name}" = ?' for name in where)
    db.execute(
        f'UPDATE "{table}" SET {settings} WHERE {conditions}',
        [*columns.values(), *where.values()],
    )
