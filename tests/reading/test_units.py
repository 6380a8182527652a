"""Lengths of time and amounts of memory."""

from __future__ import annotations

import pytest

from runyard.reading.units import (
    read_mebibytes,
    read_seconds,
    read_whole,
    round_memory,
    round_time,
    short_memory,
    short_time,
    slurm_time,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90), ("90s", 90), ("1.5h", 5400), ("2h30m", 9000), ("1-12:30:00", 131400),
        ("2:00:00", 7200), ("10:00", 600), ("7d", 604800), ("1-12", 129600), ("1-12:30", 131400),
        ("", None), ("0", None), ("0:00:00", None), ("2 hours", None), ("-1h", None), ("1h2", 3602),
    ],
)  # fmt: skip
def test_a_length_of_time_is_read_as_people_and_slurm_write_it(
    text: str, seconds: float | None
) -> None:
    assert read_seconds(text) == seconds


@pytest.mark.parametrize(
    ("text", "mebibytes"),
    [
        ("16G", 16384), ("16GB", 16384), ("16 GiB", 16384), ("500M", 500), ("1.5g", 1536),
        ("2T", 2097152), ("0", 0), ("16", None), ("16K", None), ("lots", None), ("-1G", None),
    ],
)  # fmt: skip
def test_an_amount_of_memory_says_its_unit(text: str, mebibytes: int | None) -> None:
    assert read_mebibytes(text) == mebibytes


@pytest.mark.parametrize(
    ("seconds", "slurm", "short"),
    [
        (60, "00:01:00", "1m"),
        (3600, "01:00:00", "1h"),
        (9000, "02:30:00", "2h30m"),
        (131400, "1-12:30:00", "1d12h30m"),
        (0.5, "00:00:01", "0s"),
    ],
)
def test_written_out_it_is_what_slurm_takes(seconds: float, slurm: str, short: str) -> None:
    assert slurm_time(seconds) == slurm
    assert short_time(seconds) == short


def test_memory_is_written_as_short_as_it_can_be() -> None:
    assert (short_memory(16384), short_memory(1500), short_memory(0)) == ("16G", "1500M", "0M")


def test_what_is_asked_for_is_rounded_up_to_what_a_person_would_write() -> None:
    assert [round_time(one) for one in (10, 301, 1801, 5 * 3600)] == [300, 360, 2100, 18000]
    assert [round_memory(one << 20) for one in (3, 300, 2047, 2049)] == [256, 512, 2048, 3072]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("12", 12),
        (" 7 ", 7),
        ("", None),
        (None, None),
        ("-1", None),
        ("1.5", None),
        ("7" * 20, None),
    ],
)
def test_a_whole_number_is_read_or_is_none(text: str | None, number: int | None) -> None:
    assert read_whole(text) == number


def test_an_amount_of_thousands_of_digits_is_none() -> None:
    digits = "7" * 5_000
    assert read_seconds(digits) is None
    assert read_seconds(f"{digits}:00:00") is None
    assert read_seconds(f"1-{digits}") is None
    assert read_mebibytes(f"{digits}G") is None
