"""When a run counts as silent: only what we could have heard counts."""

from __future__ import annotations

import asyncio
import time

import pytest

from runyard.server.runs.states import SILENT_SECONDS
from runyard.server.tracker import Tracker
from runyard.server.tracking import silence
from runyard.server.tracking.silence import SilenceClock, watch_silence
from tests.server.asgi import Client
from tests.server.conftest import Upsert


def _look(listening: SilenceClock, start: float, end: float) -> list[float | None]:
    return [listening.silent_before(float(now)) for now in range(int(start), int(end), 10)]


def test_after_a_start_everybody_has_time_to_be_heard() -> None:
    listening = SilenceClock(1000.0)
    assert set(_look(listening, 1010, 1120)) == {None}
    assert listening.silent_before(1120.0) == 1000.0
    assert listening.silent_before(1130.0) == 1010.0


def test_after_a_sleep_of_the_machine_the_count_begins_anew() -> None:
    listening = SilenceClock(0.0)
    _look(listening, 10, 300)
    assert listening.silent_before(300.0) == 180.0
    assert listening.silent_before(5000.0) is None
    assert set(_look(listening, 5010, 5120)) == {None}
    assert listening.silent_before(5120.0) == 5000.0


def test_after_a_clock_was_set_back() -> None:
    listening = SilenceClock(1000.0)
    _look(listening, 1010, 1200)
    assert listening.silent_before(500.0) is None
    assert set(_look(listening, 510, 620)) == {None}


def test_the_watch_marks_who_is_not_heard(
    client: Client, tracker: Tracker, upsert: Upsert, monkeypatch: pytest.MonkeyPatch
) -> None:
    upsert(name="run1")
    now = time.time()
    monkeypatch.setattr(silence, "_LOOK_EVERY", 0.01)
    monkeypatch.setattr("runyard.server.tracking.silence.time.time", _clock(now))

    async def until_marked() -> None:
        watch = asyncio.create_task(watch_silence(tracker, tracker.take_in_leftovers))
        while client_state(tracker) == "running":
            await asyncio.sleep(0.01)
        watch.cancel()

    asyncio.run(until_marked())
    assert client_state(tracker) == "crashed"


def test_the_watch_goes_on_after_trouble(
    tracker: Tracker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    looks = []

    def fail() -> None:
        looks.append(1)
        raise OSError("the spool is away")

    monkeypatch.setattr(tracker, "take_in_leftovers", fail)
    monkeypatch.setattr(silence, "_LOOK_EVERY", 0.001)

    async def until_twice() -> None:
        watch = asyncio.create_task(watch_silence(tracker, tracker.take_in_leftovers))
        while len(looks) < 2:
            await asyncio.sleep(0.001)
        watch.cancel()

    asyncio.run(until_twice())
    assert "the spool is away" in caplog.text


def client_state(tracker: Tracker) -> str:
    row = tracker._database.read(lambda c: c.execute("SELECT state FROM runs").fetchone()).result()
    state: str = row["state"]
    return state


def _clock(start: float) -> object:
    """A clock on which each look is ten seconds after the last."""
    looks = iter(range(1_000_000))
    return lambda: start + 10.0 * next(looks)


def test_clients_are_heard_often_enough() -> None:
    assert SILENT_SECONDS >= 90.0  # They speak every 30 s.
