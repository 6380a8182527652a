"""The log that a wandb client keeps of a run: every whole record of it, also of a damaged one.

A client that is killed leaves a log that ends in the middle of a record, and `wandb sync` then
refuses the log, or calls it incomplete however often it is sent. Here each record is looked at by
itself: a damaged one is left out, and reading goes on in the next block, as in LevelDB's logs,
whose form this is. Pieces of records stand in blocks of 32 KiB behind a header: checksum, length,
kind.
"""

from __future__ import annotations

import mmap
import zlib
from collections.abc import Iterator
from pathlib import Path

_BLOCK = 32768
_HEADER = 7
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
# Begins the file; the version of its form follows in a byte.
_MARK = b":W&B\xe1\xbe"
_FILE_HEADER = len(_MARK) + 1


def read_log(path: Path) -> Iterator[bytes | None]:
    """The records of a log; None wherever something is damaged or cut off."""
    if path.stat().st_size < _FILE_HEADER:
        yield None  # Killed before the header was on disk.
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data[: len(_MARK)] != _MARK:
            yield None
            return
        pieces: list[bytes] = []
        for piece in _pieces(data):
            kind, body = piece or (0, b"")
            if pieces and kind not in (_MIDDLE, _LAST):  # A beginning without its end.
                pieces = []
                yield None
            elif not pieces and kind not in (_FULL, _FIRST):
                yield None
                continue
            if kind:
                pieces.append(body)
            if kind in (_FULL, _LAST):
                yield b"".join(pieces)
                pieces = []
        if pieces:
            yield None


def _pieces(data: mmap.mmap) -> Iterator[tuple[int, bytes] | None]:
    """The pieces of records in their order; None where the rest of a block cannot be read."""
    place, end = _FILE_HEADER, len(data)
    while place < end:
        room = _BLOCK - place % _BLOCK
        if room < _HEADER:
            place += room  # A header is never split: the rest of the block is empty.
            continue
        length = int.from_bytes(data[place + 4 : place + 6], "little")
        body = data[place + _HEADER : place + _HEADER + length]
        kind = data[place + 6] if place + 6 < end else 0
        is_good = _FULL <= kind <= _LAST and len(body) == length <= room - _HEADER
        if is_good and _checksum(kind, body) == data[place : place + 4]:
            yield kind, body
            place += _HEADER + length
        else:
            yield None
            place += room


def copy_whole_records(source: Path, target: Path) -> None:
    """A log of what is whole in another one, as the client itself would have written it."""
    with source.open("rb") as original, target.open("wb") as copy:
        place = copy.write(original.read(_FILE_HEADER))
        for record in read_log(source):
            if record is not None:
                place += copy.write(_framed(record, place))


def _framed(record: bytes, place: int) -> bytes:
    """A record with its headers, for that place of a file."""
    data = bytearray()
    begin = 0
    while begin < len(record) or not begin:
        room = _BLOCK - (place + len(data)) % _BLOCK
        if room < _HEADER:
            data += bytes(room)
            room = _BLOCK
        body = record[begin : begin + room - _HEADER]
        is_first, is_last = begin == 0, begin + len(body) == len(record)
        kind = (_FULL if is_last else _FIRST) if is_first else (_LAST if is_last else _MIDDLE)
        data += _checksum(kind, body) + len(body).to_bytes(2, "little") + bytes([kind]) + body
        begin += len(body)
        if is_last:
            break
    return bytes(data)


def _checksum(kind: int, body: bytes) -> bytes:
    return zlib.crc32(body, zlib.crc32(bytes([kind]))).to_bytes(4, "little")
