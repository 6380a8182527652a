"""Rows of history from the file that a wandb client keeps of a run.

The file is a log of records in blocks of 32 KiB, each record in one or more pieces behind a header
(checksum, length, kind); a record is a protocol buffer, of which only the fields of history are
looked at. What a hard death cut off in the middle is where reading ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct

from runyard.client.client_log import (
    FILE_HEADER,
    FIRST,
    FULL,
    LAST,
    MARK,
    fields,
    read_pieces,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_ROWS = 100_000
# Of the file, so much is in memory at a time.
_MOST_AT_ONCE = 1 << 24

# Numbers of fields in the client's protocol.
_HISTORY, _ITEM, _STEP = 2, 1, 2
_KEY, _NESTED_KEY, _STEP_NUMBER = 1, 2, 1
# Values have a field for each type, and in older files are always JSON.
_NONE, _BOOLEAN, _INTEGER, _NUMBER, _TEXT, _JSON, _OLD_JSON = 3, 4, 5, 6, 7, 8, 16


def rows_after(folder: str, run_id: str, since: float) -> list[str]:
    """Rows that a run's last attempt logged after that time, as JSON.

    Those of attempts before it were brought in before it began, or were put aside.
    """
    rows: list[str] = []
    for path in files_of(folder, run_id)[-1:]:
        with contextlib.suppress(OSError):
            for row in read_rows(path):
                logged = row.get("_timestamp")
                if isinstance(logged, (int, float)) and logged > since:
                    rows.append(json.dumps(row))
    return rows[:_MOST_ROWS]


def read_rows(path: str) -> Iterator[dict[str, object]]:
    """The rows of one file, as far as it is whole."""
    file, is_fresh = RecordFile(path), True
    while is_fresh:
        is_fresh = False
        for record in file.fresh():
            is_fresh = True
            yield from map(read_row, histories(record))


def histories(record: bytes) -> list[bytes]:
    """The rows in a record, one at most, not yet read."""
    return [
        value for number, value in fields(record) if number == _HISTORY and isinstance(value, bytes)
    ]


def files_of(folder: str, run_id: str) -> list[str]:
    """The files of a run, one for each time that a program began it; the last is the newest."""
    files = []
    with contextlib.suppress(OSError):
        for name in sorted(os.listdir(f"{folder}/wandb")):
            path = f"{folder}/wandb/{name}/run-{run_id}.wandb"
            if name.startswith(("run-", "offline-run-")) and os.path.exists(path):
                files.append(path)
    return files


class RecordFile:
    """The records of a file that may still be written: each call gives those that are new."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._place = FILE_HEADER
        self._pieces = b""

    def fresh(self) -> Iterator[bytes]:
        """Records that are whole by now and were not given before."""
        with open(self._path, "rb") as file:
            if file.read(len(MARK)) != MARK:
                return
            begin = file.seek(self._place)
            data = file.read(_MOST_AT_ONCE)
        for piece in read_pieces(data, begin, begin):
            if piece is None:
                return
            kind, body, self._place = piece
            self._pieces = body if kind in (FULL, FIRST) else self._pieces + body
            if kind in (FULL, LAST):
                yield self._pieces


def read_row(history: bytes) -> dict[str, object]:
    row: dict[str, object] = {}
    for number, value in fields(history):
        if not isinstance(value, bytes):
            continue
        if number == _ITEM:
            _set(row, value)
        elif number == _STEP:
            row.setdefault("_step", dict(fields(value)).get(_STEP_NUMBER, 0))
    return row


def _set(row: dict[str, object], item: bytes) -> None:
    names: list[str] = []
    content: object = None
    for number, value in fields(item):
        if number in (_KEY, _NESTED_KEY) and isinstance(value, bytes):
            names.append(value.decode(errors="replace"))
        else:
            content = _value(number, value)
    place = row
    for name in names[:-1]:
        inner = place.setdefault(name, {})
        place = inner if isinstance(inner, dict) else {}
    if names:
        place[names[-1]] = content


def _value(number: int, value: bytes | int) -> object:
    if isinstance(value, int):
        if number == _INTEGER:
            return (value >> 1) ^ -(value & 1)  # Signs are in the lowest bit.
        return bool(value) if number == _BOOLEAN else None
    if number == _NUMBER:
        return struct.unpack("<d", value)[0]
    if number == _TEXT:
        return value.decode(errors="replace")
    with contextlib.suppress(ValueError):
        return json.loads(value) if number in (_JSON, _OLD_JSON) else None
    return None
