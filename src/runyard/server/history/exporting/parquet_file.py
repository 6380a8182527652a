"""Writes a run's history as one Parquet file, page by page: what is in memory is never more than a
page and a group of rows, and other readers get their turn in between.

The rows are read twice, because the types of the columns stand at the beginning of the file.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from sqlite3 import Connection
from typing import TYPE_CHECKING, Any

from runyard.server.history.exporting.shapes import (
    INTEGER,
    NOTHING,
    Shape,
    arrow_type,
    columns_schema,
    fitted,
    merged,
    shape_of,
)
from runyard.server.history.history import HISTORY, keys_of_run, read_objects
from runyard.server.history.metric_keys import STEP
from runyard.server.history.reading.rows import as_object
from runyard.server.store.store import Store

if TYPE_CHECKING:
    import pyarrow

# Of a page of rows, and of a group of rows in the file.
_PAGE_CELLS, _PAGE_ROWS = 100_000, 5_000
_GROUP_BYTES, _GROUP_ROWS = 32 << 20, 65_536


async def write_history(store: Store, run: int, path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    # Clients look for this column in each file.
    shapes: dict[str, Shape] = {STEP: INTEGER}
    end = 0
    page = await store.read(_rows_in_page, run)
    start: int | None = 0
    while start is not None:
        start = await store.read(_take_shapes, run, start, page, shapes)
        end = end if start is None else start
    schema = columns_schema(shapes)
    writer = await asyncio.to_thread(pyarrow.parquet.ParquetWriter, path, schema)
    try:
        async for group in _groups(store, run, page, end, shapes, schema):
            await asyncio.to_thread(writer.write_table, group)
    finally:
        await asyncio.to_thread(writer.close)


async def _groups(
    store: Store, run: int, page: int, end: int, shapes: dict[str, Shape], schema: pyarrow.Schema
) -> AsyncIterator[pyarrow.Table]:
    import pyarrow

    start: int | None = 0
    waiting: list[pyarrow.RecordBatch] = []
    while start is not None:
        batch, start = await store.read(_batch, run, start, page, end, shapes, schema)
        if batch is not None:
            waiting.append(batch)
        rows, size = sum(part.num_rows for part in waiting), sum(part.nbytes for part in waiting)
        if waiting and (start is None or rows >= _GROUP_ROWS or size >= _GROUP_BYTES):
            yield pyarrow.Table.from_batches(waiting)
            waiting = []


def _rows_in_page(db: Connection, run: int) -> int:
    keys = len(keys_of_run(db, run, HISTORY))
    return max(1, min(_PAGE_ROWS, _PAGE_CELLS // max(keys, 1)))


def _take_shapes(
    db: Connection, run: int, start: int, page: int, shapes: dict[str, Shape]
) -> int | None:
    """Add what the columns of a page have to hold; returns where the next page begins."""
    rows, following = _read_page(db, run, start, page)
    for row in rows:
        for name, value in row.items():
            shapes[name] = merged(shapes.get(name, NOTHING), shape_of(value))
    return following


def _batch(
    db: Connection,
    run: int,
    start: int,
    page: int,
    end: int,
    shapes: dict[str, Shape],
    schema: pyarrow.Schema,
) -> tuple[pyarrow.RecordBatch | None, int | None]:
    import pyarrow

    # What has come since the columns were chosen may not fit them.
    rows, following = _read_page(db, run, start, min(page, end - start))
    if not rows:
        return None, following
    columns = [
        pyarrow.array([fitted(row.get(name), shape) for row in rows], arrow_type(shape))
        for name, shape in shapes.items()
    ]
    return pyarrow.RecordBatch.from_arrays(columns, schema=schema), following


def _read_page(
    db: Connection, run: int, start: int, page: int
) -> tuple[list[dict[str, Any]], int | None]:
    if page <= 0:
        return [], None
    objects = list(read_objects(db, run, HISTORY, start, start + page))
    if not objects:  # The end, or numbers that no row has.
        first = next(read_objects(db, run, HISTORY, start), None)
        return [], None if first is None else first[0]
    return [as_object(row) for _, row in objects], objects[-1][0] + 1
