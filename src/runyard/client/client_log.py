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
# The kind of a record is the number of its field in the client's protocol.
_EXIT = 18
# What a killed client did not write: its exit, with code 1, and the record that ends a log.
_CLOSING = (b"\x92\x01\x02\x08\x01", b"\xa2\x01\x00")


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


def is_complete(path: Path) -> bool:
    """Whether every record is whole and the client has noted how its run ended."""
    has_exit = False
    for record in read_log(path):
        if record is None:
            return False
        has_exit = has_exit or _EXIT in _fields(record)
    return has_exit


def copy_complete(source: Path, target: Path) -> None:
    """A log of what is whole in another one, with an exit: as the client would have written it.

    Newer clients assume the exit that is added here; older ones do not count a log without one as
    sent, however often they have sent it.
    """
    has_exit = False
    with source.open("rb") as original, target.open("wb") as copy:
        place = copy.write(original.read(_FILE_HEADER))
        for record in read_log(source):
            if record is not None:
                place += copy.write(_framed(record, place))
                has_exit = has_exit or _EXIT in _fields(record)
        for record in () if has_exit else _CLOSING:
            place += copy.write(_framed(record, place))


def _fields(record: bytes) -> Iterator[int]:
    """The numbers of a record's fields, as Protocol Buffers write them."""
    place = 0
    while place < len(record):
        tag, place = _varint(record, place)
        yield tag >> 3
        value, place = _varint(record, place)
        if tag & 7 == 2:  # The value was the length of what follows.
            place += value
        elif tag & 7:
            return  # Records have numbers and messages only.


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """A number in pieces of seven bits, and the place behind it."""
    value = shift = 0
    while place < len(data):
        value |= (data[place] & 0x7F) << shift
        shift += 7
        place += 1
        if data[place - 1] < 0x80:
            break
    return value, place


def _framed(record: bytes, place: int) -> bytes:
    """A record with its headers, for that place of a file."""
    data = bytearray()
    begin, is_first, is_last = 0, True, False
    while not is_last:
        room = _BLOCK - (place + len(data)) % _BLOCK
        if room < _HEADER:
            data += bytes(room)
            room = _BLOCK
        body = record[begin : begin + room - _HEADER]
        is_last = begin + len(body) == len(record)
        kind = (_FULL if is_last else _FIRST) if is_first else (_LAST if is_last else _MIDDLE)
        data += _checksum(kind, body) + len(body).to_bytes(2, "little") + bytes([kind]) + body
        # With room for a header alone, the first piece is empty and the next one is not the first.
        begin, is_first = begin + len(body), False
    return bytes(data)


def _checksum(kind: int, body: bytes) -> bytes:
    return zlib.crc32(body, zlib.crc32(bytes([kind]))).to_bytes(4, "little")
