"""A client's log, cut off anywhere or damaged in the middle: every whole record is read."""

from __future__ import annotations

import random
import zlib
from pathlib import Path

import pytest
from wandb.proto.wandb_internal_pb2 import (  # type: ignore[attr-defined]  # Made on import.
    FinalRecord,
    HistoryRecord,
    Record,
    RunExitRecord,
)

from runyard.client.client_log import copy_complete, is_complete, read_log

HEADER = b":W&B\xe1\xbe\x00"
# Small ones, and some that reach over one block and over several.
SIZES = (1, 30, 32_740, 5, 7, 70_000, 300)
EXIT = Record(num=300, exit=RunExitRecord(exit_code=3, runtime=70_000)).SerializeToString()


@pytest.fixture
def records() -> list[bytes]:
    chance = random.Random(3)
    return [chance.randbytes(size) for size in SIZES]


@pytest.fixture
def log(tmp_path: Path, records: list[bytes]) -> Path:
    path = tmp_path / "whole.wandb"
    path.write_bytes(HEADER + _framed(records))
    return path


def _framed(records: list[bytes]) -> bytes:
    """By the text of LevelDB's form, without our writer: blocks of 32 KiB, pieces in each."""
    data = bytearray(HEADER)
    for record in records:
        rest, first = record, True
        while rest or first:
            left = 32768 - len(data) % 32768
            if left < 7:
                data += b"\0" * left
                left = 32768
            piece, rest = rest[: left - 7], rest[left - 7 :]
            kind = (1 if not rest else 2) if first else (4 if not rest else 3)
            data += zlib.crc32(bytes([kind]) + piece).to_bytes(4, "little")
            data += len(piece).to_bytes(2, "little") + bytes([kind]) + piece
            first = False
    return bytes(data[len(HEADER) :])


def test_a_whole_log_is_read_and_written_as_it_is(
    log: Path, records: list[bytes], tmp_path: Path
) -> None:
    assert list(read_log(log)) == records
    log.write_bytes(HEADER + _framed([*records, EXIT]))
    assert is_complete(log)
    copy_complete(log, tmp_path / "copy.wandb")
    assert (tmp_path / "copy.wandb").read_bytes() == log.read_bytes()


def test_a_record_may_begin_at_any_distance_from_the_end_of_a_block(tmp_path: Path) -> None:
    log, copy = tmp_path / "log.wandb", tmp_path / "copy.wandb"
    for size in range(32_730, 32_770):  # From room for a small record to none for a header.
        records = [b"\x08" * size, b"a record", EXIT]
        log.write_bytes(HEADER + _framed(records))
        copy_complete(log, copy)
        assert copy.read_bytes() == log.read_bytes(), size
        assert list(read_log(copy)) == records


def test_cut_off_at_any_place_every_record_before_it_is_there(
    log: Path, records: list[bytes], tmp_path: Path
) -> None:
    data = log.read_bytes()
    ends = [len(HEADER + _framed(records[:count])) for count in range(len(records) + 1)]
    near = {end + more for end in ends for more in (-8, -7, -6, -1, 0, 1, 6, 7, 8)}
    blocks = {
        block + more
        for block in range(0, len(data), 32768)
        for more in (-8, -7, -6, -1, 0, 1, 6, 7, 8)
    }
    cut = tmp_path / "cut.wandb"
    for length in sorted(place for place in near | blocks if 0 <= place <= len(data)):
        cut.write_bytes(data[:length])
        whole = sum(end <= length for end in ends[1:])
        entries = list(read_log(cut))
        assert [entry for entry in entries if entry is not None] == records[:whole], length
        if length >= len(HEADER):
            copy_complete(cut, tmp_path / "copy.wandb")
            assert list(read_log(tmp_path / "copy.wandb"))[:-2] == records[:whole]


def test_a_log_without_an_exit_gets_the_one_that_newer_clients_assume(tmp_path: Path) -> None:
    log, copy = tmp_path / "killed.wandb", tmp_path / "copy.wandb"
    row = Record(num=18, history=HistoryRecord()).SerializeToString()
    log.write_bytes(HEADER + _framed([row]))
    assert not is_complete(log)
    copy_complete(log, copy)
    assert is_complete(copy)
    entries = [Record.FromString(entry or b"") for entry in read_log(copy)]
    assert entries == [
        Record.FromString(row),
        Record(exit=RunExitRecord(exit_code=1)),
        Record(final=FinalRecord()),
    ]


def test_damage_in_the_middle_takes_no_more_than_its_block(log: Path, records: list[bytes]) -> None:
    data = bytearray(log.read_bytes())
    data[len(HEADER) + 8] ^= 0xFF  # In the second record.
    log.write_bytes(data)
    entries = list(read_log(log))
    assert None in entries
    # The third begins in the damaged block.
    assert [entry for entry in entries if entry is not None] == [records[0], *records[3:]]


def test_what_is_no_log_holds_nothing(tmp_path: Path) -> None:
    for content in (b"", HEADER[:4], b"something else altogether"):
        path = tmp_path / "odd.wandb"
        path.write_bytes(content)
        assert list(read_log(path)) == [None]
