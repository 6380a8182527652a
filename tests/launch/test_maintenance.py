"""Maintenances in the way of a job, as Slurm tells of them."""

from __future__ import annotations

import time

from runyard.schedulers.slurm.maintenance import (
    Maintenance,
    read_maintenances,
    shortest_link,
    words_for,
)

# As 22.05 prints them.
PRINTED = """\
ReservationName=course StartTime=2026-11-15T12:00:00 EndTime=2026-11-15T18:00:00 \
Duration=06:00:00 Nodes=n1 NodeCnt=1 CoreCnt=4 Features=(null) PartitionName=main \
Flags=SPEC_NODES TRES=cpu=4 Users=kim State=INACTIVE
ReservationName=spring cleaning StartTime=2026-11-16T08:00:00 EndTime=2026-11-16T20:00:00 \
Duration=12:00:00 Nodes=n[1-4] NodeCnt=4 CoreCnt=16 Features=(null) PartitionName=(null) \
Flags=MAINT,SPEC_NODES,ALL_NODES TRES=cpu=16 Users=root State=INACTIVE
"""
HOUR = 3600.0


def at(text: str) -> float:
    return time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))


def test_only_maintenances_are_read() -> None:
    start, end = at("2026-11-16T08:00:00"), at("2026-11-16T20:00:00")
    assert read_maintenances(PRINTED) == [Maintenance("spring cleaning", start, end, "n[1-4]")]
    assert read_maintenances("No reservations in the system\n") == []


def test_what_reaches_into_it_is_told_what_would_fit() -> None:
    (one,) = read_maintenances(PRINTED)
    now = one.start - 5 * HOUR
    assert one.is_in_the_way(now, 6 * HOUR)
    assert not one.is_in_the_way(now, 4 * HOUR)
    assert not one.is_in_the_way(one.end, 6 * HOUR)
    said = words_for(one, 6 * HOUR, 0.0, now)
    assert "from Mon 16 Nov 08:00 to Mon 16 Nov 20:00" in said
    assert "with --time 5h or less" in said


def test_links_of_a_chain_may_be_as_short_as_half_of_what_is_left() -> None:
    (one,) = read_maintenances(PRINTED)
    now = one.start - 5 * HOUR
    assert shortest_link(one, 24 * HOUR, 0.0, now) == 2.5 * HOUR
    assert "may shorten links to 2h30m" in words_for(one, 24 * HOUR, 2.5 * HOUR, now)
    # Not shorter than jobs may be, and none where nothing fits.
    assert shortest_link(one, 24 * HOUR, 3 * HOUR, now) == 3 * HOUR
    assert shortest_link(one, 24 * HOUR, 6 * HOUR, now) == 0.0
    assert shortest_link(one, 24 * HOUR, 0.0, one.start - 30) == 0.0
