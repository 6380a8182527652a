"""Rows of JSON as columns of numbers, and back, without loss.

A batch of history lines becomes one blob: for each key the values that have one type, as an array,
with the rows they stand in. Numbers stay numbers (integers stay integers, NaN and the infinities
stay what they are), everything else is kept as JSON text. Nested objects become keys with a path;
objects with a `_type` are media and stay whole.

    blob    = magic, number of columns, column heads, column bodies
    head    = key, kind, dense?, count, length of the body
    body    = row numbers (unless dense: one value in each row), values
"""

from __future__ import annotations

import json
import struct
import zlib
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

# Joins the parts of a nested key. In JSON it can only stand escaped: a line that has it in a key
# (or anywhere) is kept as it is.
NEST = "\x1f"
_NEST_ESCAPED = ("\\u001f", "\\u001F")

FLOAT, INTEGER, TRUTH, TEXT, RAW = 1, 2, 3, 4, 5
LAST_NUMBER = TRUTH
_CODES = {FLOAT: "d", INTEGER: "q", TRUTH: "b"}
_DTYPES: dict[int, np.dtype[Any]] = {
    FLOAT: np.dtype("<f8"),
    INTEGER: np.dtype("<i8"),
    TRUTH: np.dtype("i1"),
}
_KIND_OF = {float: FLOAT, int: INTEGER, bool: TRUTH}
_MAGIC = b"RC1"
_COUNT = struct.Struct("<I")
_HEAD = struct.Struct("<IBBHII")
_NUMBER = {FLOAT: struct.Struct("<d"), INTEGER: struct.Struct("<q")}
_LARGEST = 2**63
_DEEPEST = 32
_WORTH_PACKING = 0.7
# A short run is read more often than its size hurts.
_SMALL = 32 << 10

Numbers = npt.NDArray[Any]
Columns = dict[str, tuple[list[int], list[Any]]]


@dataclass(frozen=True)
class Column:
    """Values of one key and one kind; `lines` are the numbers of the lines they stand in."""

    key: int
    kind: int
    lines: Numbers
    values: Numbers | list[str]

    def at(self, lines: Numbers) -> Column:
        """The same values in other lines."""
        return Column(self.key, self.kind, lines, self.values)


def encode(
    lines: Sequence[str], number_keys: Callable[[Iterable[str]], Mapping[str, int]]
) -> bytes:
    """Lines of JSON as one blob; the first line is row 0. `number_keys` is asked once."""
    row = _only_numbers(lines[0]) if len(lines) == 1 else None
    if row is not None:
        return _encode_row(row, number_keys(row))
    columns, unreadable = _columns(_parse(lines, orjson.loads), lines)
    if any(_has_lost_integers(values) for _, values in columns.values()):
        columns, unreadable = _columns(_parse(lines, json.loads), lines)
    key_of = number_keys([*columns, *([""] if unreadable else [])])
    heads, bodies = [], []
    for name, (numbers, values) in columns.items():
        for kind, rows, same in _by_kind(numbers, values):
            body = _body(kind, rows, same, len(lines))
            dense = len(rows) == len(lines)
            heads.append(_HEAD.pack(key_of[name], kind, dense, 0, len(rows), len(body)))
            bodies.append(body)
    if unreadable:
        body = _body(RAW, list(unreadable), list(unreadable.values()), -1)
        heads.append(_HEAD.pack(key_of[""], RAW, 0, 0, len(unreadable), len(body)))
        bodies.append(body)
    return b"".join([_MAGIC, _COUNT.pack(len(heads)), *heads, *bodies])


def _only_numbers(line: str) -> dict[str, float] | None:
    """What a line says, if that is numbers by plain names; None of others."""
    if any(mark in line for mark in _NEST_ESCAPED):
        return None
    try:
        row = orjson.loads(line)
    except ValueError:
        return None
    if type(row) is not dict or not row or not set(map(type, row.values())) <= {float, int}:
        return None
    return row if max(map(abs, row.values())) < _LARGEST else None


def _encode_row(row: Mapping[str, float], key_of: Mapping[str, int]) -> bytes:
    """The blob of one row of numbers: what most who log every second send."""
    heads, values = [], []
    for name, value in row.items():
        kind = _KIND_OF[type(value)]
        heads.append(_HEAD.pack(key_of[name], kind, 1, 0, 1, 8))
        values.append(_NUMBER[kind].pack(value))
    return b"".join([_MAGIC, _COUNT.pack(len(heads)), *heads, *values])


def pack(columns: Sequence[Column], start: int, stop: int) -> bytes:
    """Columns of the lines `start` to `stop` as one blob."""
    heads, bodies = [], []
    for column in columns:
        dense = len(column.lines) == stop - start
        rows = b"" if dense else (column.lines - start).astype(np.uint32).tobytes()
        if isinstance(column.values, list):
            body = rows + zlib.compress(_join_text(column.values), 1)
        else:
            body = rows + column.values.tobytes()
        count = len(column.lines)
        heads.append(_HEAD.pack(column.key, column.kind, dense, 0, count, len(body)))
        bodies.append(body)
    return b"".join([_MAGIC, _COUNT.pack(len(heads)), *heads, *bodies])


def decode(blob: bytes, start: int, wanted: frozenset[int] | None = None) -> list[Column]:
    """The columns of a blob whose first row is line `start`; all, or those of some keys."""
    count = _COUNT.unpack_from(blob, len(_MAGIC))[0]
    place = len(_MAGIC) + _COUNT.size
    body = place + count * _HEAD.size
    columns = []
    for head in range(count):
        key, kind, dense, _, size, length = _HEAD.unpack_from(blob, place + head * _HEAD.size)
        if wanted is None or key in wanted:
            lines, values = _read_body(blob, body, kind, bool(dense), size, length)
            columns.append(Column(key, kind, lines + start, values))
        body += length
    return columns


def keys_in(blob: bytes) -> set[int]:
    """Which keys a blob holds; reads its heads only."""
    count = _COUNT.unpack_from(blob, len(_MAGIC))[0]
    place = len(_MAGIC) + _COUNT.size
    return {_HEAD.unpack_from(blob, place + head * _HEAD.size)[0] for head in range(count)}


def to_rows(
    columns: Iterable[Column], name_of: Callable[[int], str]
) -> dict[int, dict[str, Any] | str]:
    """Rows by line number, put together again from columns."""
    rows: dict[int, Any] = {}
    for column in columns:
        values = column.values if isinstance(column.values, list) else column.values.tolist()
        numbers = column.lines.tolist()
        if column.kind == RAW:
            rows.update(zip(numbers, values, strict=True))
            continue
        if column.kind == TEXT:
            values = [json.loads(value) for value in values]
        elif column.kind == TRUTH:
            values = [bool(value) for value in values]
        *parents, last = name_of(column.key).split(NEST)
        for number, value in zip(numbers, values, strict=True):
            place = rows.setdefault(number, {})
            for parent in parents:
                place = place.setdefault(parent, {})
            place[last] = value
    return dict(sorted(rows.items()))


def merge(columns: Iterable[Column]) -> list[Column]:
    """Columns of the same key and kind as one, in the order of lines."""
    groups: dict[tuple[int, int], list[Column]] = {}
    for column in columns:
        groups.setdefault((column.key, column.kind), []).append(column)
    return [
        Column(key, kind, np.concatenate([part.lines for part in group]), _joined(group))
        for (key, kind), group in groups.items()
    ]


def pack_values(values: Numbers | list[str]) -> bytes:
    """Values for long keeping: compressed where that pays, numbers with like bytes side by side."""
    if isinstance(values, list):
        return zlib.compress(_join_text(values), 1)
    if values.nbytes < _SMALL:
        return values.tobytes()
    # The high bytes of neighbouring numbers are alike; next to each other they shrink.
    shuffled = values.view(np.uint8).reshape(len(values), values.itemsize).T
    packed = zlib.compress(shuffled.tobytes(), 1)
    return packed if len(packed) < values.nbytes * _WORTH_PACKING else values.tobytes()


def unpack_values(kind: int, count: int, data: bytes) -> Numbers | list[str]:
    if kind in (TEXT, RAW):
        return _split_text(zlib.decompress(data))
    dtype = _DTYPES[kind]
    if len(data) == count * dtype.itemsize:
        return np.frombuffer(data, dtype)
    shuffled = np.frombuffer(zlib.decompress(data), np.uint8).reshape(dtype.itemsize, count)
    return np.ascontiguousarray(shuffled.T).view(dtype).ravel()


def _parse(lines: Sequence[str], loads: Callable[[str], Any]) -> list[Any]:
    """What each line says; None where it says nothing that fits into columns."""
    text = "[" + ",".join(lines) + "]"
    if not any(mark in text for mark in _NEST_ESCAPED):
        for parse in dict.fromkeys((loads, json.loads)):  # The quick one refuses NaN.
            try:
                # One call for all is a third faster than one for each.
                rows: list[Any] = parse(text)
                if len(rows) == len(lines):
                    return rows
            except (ValueError, RecursionError):
                pass
    return [_parse_one(line) for line in lines]


def _parse_one(line: str) -> Any:
    try:
        return None if any(mark in line for mark in _NEST_ESCAPED) else json.loads(line)
    except (ValueError, RecursionError):
        return None


def _columns(rows: list[Any], lines: Sequence[str]) -> tuple[Columns, dict[int, str]]:
    """Values by key with the rows they stand in; and the lines that are not taken apart."""
    columns: Columns = {}
    unreadable: dict[int, str] = {}
    for number, row in enumerate(rows):
        if type(row) is not dict or not row:
            unreadable[number] = lines[number]
            continue
        for name, value in row.items():
            if type(value) is dict:
                _flatten(columns, number, name, value)
                continue
            column = columns.get(name)
            if column is None:
                columns[name] = ([number], [value])
            else:
                column[0].append(number)
                column[1].append(value)
    return columns, unreadable


def _has_lost_integers(values: list[Any]) -> bool:
    """Whether one of them may be an integer of more than 64 bits, of which a float was made."""
    if type(values[0]) is float and set(map(type, values)) == {float}:
        return bool(max(values) >= _LARGEST or min(values) <= -_LARGEST)
    return any(map(_may_be_lost, values))


def _may_be_lost(value: Any) -> bool:
    if type(value) is float:
        return abs(value) >= _LARGEST
    if type(value) is list:
        return any(map(_may_be_lost, value))
    return any(map(_may_be_lost, value.values())) if type(value) is dict else False


def _flatten(
    columns: Columns,
    number: int,
    path: str,
    value: Mapping[str, Any],
    depth: int = 1,
) -> None:
    """Put what a nested object holds under keys with a path; media stays whole."""
    if not value or "_type" in value or depth >= _DEEPEST:
        numbers, values = columns.setdefault(path, ([], []))
        numbers.append(number)
        values.append(value)
        return
    for key, item in value.items():
        if type(item) is dict:
            _flatten(columns, number, f"{path}{NEST}{key}", item, depth + 1)
        else:
            numbers, values = columns.setdefault(f"{path}{NEST}{key}", ([], []))
            numbers.append(number)
            values.append(item)


def _by_kind(numbers: list[int], values: list[Any]) -> Iterable[tuple[int, list[int], list[Any]]]:
    types = set(map(type, values))
    if len(types) == 1:
        kind = _KIND_OF.get(types.pop(), TEXT)
        if kind != INTEGER or (min(values) >= -_LARGEST and max(values) < _LARGEST):
            return [(kind, numbers, values)]
    groups: dict[int, tuple[list[int], list[Any]]] = {}
    for number, value in zip(numbers, values, strict=True):
        kind = _KIND_OF.get(type(value), TEXT)
        if kind == INTEGER and not -_LARGEST <= value < _LARGEST:
            kind = TEXT
        rows, same = groups.setdefault(kind, ([], []))
        rows.append(number)
        same.append(value)
    return [(kind, rows, same) for kind, (rows, same) in groups.items()]


def _body(kind: int, rows: list[int], values: list[Any], height: int) -> bytes:
    numbers = b"" if len(rows) == height else array("I", rows).tobytes()
    if kind in _CODES:
        return numbers + array(_CODES[kind], values).tobytes()
    if kind == TEXT:
        values = [json.dumps(value, separators=(",", ":"), ensure_ascii=True) for value in values]
    return numbers + zlib.compress(_join_text(values), 1)


def _read_body(
    blob: bytes, place: int, kind: int, dense: bool, count: int, length: int
) -> tuple[Numbers, Numbers | list[str]]:
    end = place + length
    if dense:
        lines = np.arange(count, dtype=np.int64)
    else:
        lines = np.frombuffer(blob, np.uint32, count, place).astype(np.int64)
        place += 4 * count
    if kind in _CODES:
        return lines, np.frombuffer(blob, _DTYPES[kind], count, place)
    return lines, _split_text(zlib.decompress(blob[place:end]))


def _joined(group: list[Column]) -> Numbers | list[str]:
    if group[0].kind in (TEXT, RAW):
        return [value for column in group for value in column.values]
    return np.concatenate([np.asarray(column.values) for column in group])


def _join_text(values: Sequence[str]) -> bytes:
    # Neither JSON made by us nor a client's line holds a line feed.
    return "\n".join(values).encode(errors="surrogatepass")


def _split_text(data: bytes) -> list[str]:
    return data.decode(errors="surrogatepass").split("\n")


def heads(blob: bytes) -> list[tuple[int, int, int]]:
    """Key, kind and number of values of each column; reads no values."""
    count = _COUNT.unpack_from(blob, len(_MAGIC))[0]
    place = len(_MAGIC) + _COUNT.size
    result = []
    for number in range(count):
        key, kind, _, _, size, _ = _HEAD.unpack_from(blob, place + number * _HEAD.size)
        result.append((key, kind, size))
    return result


def pick(column: Column, numbers: Numbers) -> Column:
    """What a column holds in these rows; `numbers` go upwards."""
    if not len(numbers):
        return Column(column.key, column.kind, column.lines[:0], column.values[:0])
    places = np.minimum(np.searchsorted(numbers, column.lines), len(numbers) - 1)
    chosen = np.flatnonzero(numbers[places] == column.lines)
    if isinstance(column.values, list):
        values: Numbers | list[str] = [column.values[number] for number in chosen.tolist()]
    else:
        values = column.values[chosen]
    return Column(column.key, column.kind, column.lines[chosen], values)
