"""The log that a wandb client keeps of a run: every whole record of it, also of a damaged one.

A client that is killed leaves a log that ends in the middle of a record, and `wandb sync` then
refuses the log, or calls it incomplete however often it is sent. Here each record is looked at by
itself: a damaged one is left out, and reading goes on in the next block, as in LevelDB's logs,
whose form this is. Pieces of records stand in blocks of 32 KiB behind a header: checksum, length,
kind.
"""

from __future__ import annotations

import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    import mmap
    from collections.abc import Iterator
    from pathlib import Path

_BLOCK = 32768
_HEADER = 7
FULL, FIRST, _MIDDLE, LAST = 1, 2, 3, 4
# Begins the file; the version of its form follows in a byte.
MARK = b":W&B\xe1\xbe"
FILE_HEADER = len(MARK) + 1
# The kind of a record is the number of its field in the client's protocol.
_EXIT = 18
# What a killed client did not write: its exit, with code 1, and the record that ends a log.
_CLOSING = (b"\x92\x01\x02\x08\x01", b"\xa2\x01\x00")


def read_log(path: Path) -> Iterator[bytes | None]:
    """The records of a log; None wherever something is damaged or cut off."""
    if path.stat().st_size < FILE_HEADER:
        yield None  # Killed before the header was on disk.
        return
    import mmap

    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data[: len(MARK)] != MARK:
            yield None
            return
        pieces: list[bytes] = []
        for piece in read_pieces(data, FILE_HEADER):
            kind, body, _ = piece or (0, b"", 0)
            if pieces and kind not in (_MIDDLE, LAST):  # A beginning without its end.
                pieces = []
                yield None
            elif not pieces and kind not in (FULL, FIRST):
                yield None
                continue
            if kind:
                pieces.append(body)
            if kind in (FULL, LAST):
                yield b"".join(pieces)
                pieces = []
        if pieces:
            yield None


def read_pieces(
    data: bytes | mmap.mmap, place: int, begin: int = 0
) -> Iterator[tuple[int, bytes, int] | None]:
    """The pieces of records from a place of the file on: kind, body, and the place behind. None
    where the rest of a block cannot be read. `data` is the file from `begin` on."""
    end = begin + len(data)
    while place < end:
        room = _BLOCK - place % _BLOCK
        if room < _HEADER:
            place += room  # A header is never split: the rest of the block is empty.
            continue
        head = data[place - begin : place - begin + _HEADER]
        length = int.from_bytes(head[4:6], "little")
        body = data[place - begin + _HEADER : place - begin + _HEADER + length]
        kind = head[6] if len(head) == _HEADER else 0
        is_good = FULL <= kind <= LAST and len(body) == length <= room - _HEADER
        if is_good and _checksum(kind, body) == head[:4]:
            place += _HEADER + length
            yield kind, body, place
        else:
            yield None
            place += room


def is_complete(path: Path) -> bool:
    """Whether every record is whole and the client has noted how its run ended."""
    has_exit = False
    for record in read_log(path):
        if record is None:
            return False
        has_exit = has_exit or _EXIT in dict(fields(record))
    return has_exit


def copy_complete(source: Path, target: Path) -> None:
    """A log of what is whole in another one, with an exit: as the client would have written it.

    Newer clients assume the exit that is added here; older ones do not count a log without one as
    sent, however often they have sent it.
    """
    has_exit = False
    with source.open("rb") as original, target.open("wb") as copy:
        place = copy.write(original.read(FILE_HEADER))
        for record in read_log(source):
            if record is not None:
                place += copy.write(_framed(record, place))
                has_exit = has_exit or _EXIT in dict(fields(record))
        for record in () if has_exit else _CLOSING:
            place += copy.write(_framed(record, place))


def fields(data: bytes) -> Iterator[tuple[int, bytes | int]]:
    """The fields of a protocol buffer: numbers, and bytes that may be a buffer themselves."""
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            value, place = _varint(data, place)
            yield number, value
        elif kind == 2:
            length, place = _varint(data, place)
            yield number, data[place : place + length]
            place += length
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
            yield number, data[place : place + length]
            place += length
        else:
            return


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while place < len(data):
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
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
        kind = (FULL if is_last else FIRST) if is_first else (LAST if is_last else _MIDDLE)
        data += _checksum(kind, body) + len(body).to_bytes(2, "little") + bytes([kind]) + body
        # With room for a header alone, the first piece is empty and the next one is not the first.
        begin, is_first = begin + len(body), False
    return bytes(data)


def _checksum(kind: int, body: bytes) -> bytes:
    return zlib.crc32(body, zlib.crc32(bytes([kind]))).to_bytes(4, "little")
