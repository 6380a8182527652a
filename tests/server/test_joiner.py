"""When the server looks whether a run's batches are due to be joined."""

from __future__ import annotations

import asyncio

import pytest

from runyard.server.history import joining as joining
from runyard.server.history import segments
from runyard.server.history.history import HISTORY
from runyard.server.history.joining import Joiner
from runyard.server.history.segments import BATCHES, ROWS
from runyard.server.tracker import Tracker
from runyard.server.tracking import streams
from tests.server.asgi import Client
from tests.server.processes import Process


def seen_before(run: int) -> Joiner:
    """One that has looked at the run once."""
    joiner = Joiner()
    joiner.note(run, 1, complete=False)
    joiner.take_due()
    return joiner


def test_a_run_that_is_new_to_us_is_looked_at_once() -> None:
    joiner = Joiner()
    joiner.note(7, 1, complete=False)
    joiner.note(7, 1, complete=False)
    assert joiner.take_due() == {7}
    assert joiner.take_due() == set()


def test_a_run_is_looked_at_again_when_enough_batches_came() -> None:
    joiner = seen_before(7)
    for _ in range(BATCHES):
        joiner.note(7, 1, complete=False)
        assert joiner.take_due() == set()
    joiner.note(7, 1, complete=False)
    assert joiner.take_due() == {7}
    joiner.note(7, 1, complete=False)
    assert joiner.take_due() == set()


def test_a_run_is_looked_at_again_when_enough_rows_came() -> None:
    joiner = seen_before(7)
    joiner.note(7, ROWS - 1, complete=False)
    assert joiner.take_due() == set()
    joiner.note(7, 1, complete=False)
    assert joiner.take_due() == {7}


def test_a_run_that_is_over_is_looked_at() -> None:
    joiner = seen_before(7)
    joiner.note(7, 0, complete=True)
    assert joiner.take_due() == {7}


def test_a_run_that_crashed_is_joined(
    client: Client, tracker: Tracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    for run in ("crashed", "alive"):
        process = Process(client, run)
        process.start()
        for step in range(5):
            process.log(step, [step])
    later = 1e12
    tracker._database.write(
        lambda connection: connection.execute(
            "UPDATE runs SET heartbeat_at = ? WHERE id = 'alive'", (later + 1,)
        )
    ).result()
    tracker._database.write(lambda connection: streams.mark_silent(connection, later)).result()
    monkeypatch.setattr(joining, "_LOOK_EVERY", 0.01)

    def unjoined(run: int) -> int:
        return tracker._database.read(lambda c: segments.waiting(c, run, HISTORY)).result()

    async def work_until_joined() -> None:
        # A new one, as after a restart: it has heard of no run.
        work = asyncio.create_task(Joiner().work(tracker))
        while unjoined(1) and not work.done():
            await asyncio.sleep(0.02)
        work.cancel()

    assert unjoined(1) == 5
    asyncio.run(asyncio.wait_for(work_until_joined(), 180))
    assert (unjoined(1), unjoined(2)) == (0, 5)
