"""Whether a trial may begin in a job: what is learnt of a sweep's programs, and what follows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from runyard.server.sweeps.policy.fitting import Programs, Room, explain, refusal
from runyard.server.tracker import Tracker
from tests.server.asgi import Client
from tests.server.sweeping import GRID, Agent, create, log, set_state, show

LINK = Room(left=54.0, whole=54.0)
NINETY = Programs(finished=2, finished_seconds=200.0, shortest_finishing=90.0)


@pytest.mark.parametrize(
    ("known", "room", "why"),
    [
        # Nobody knows: it is tried.
        (Programs(), LINK, None),
        (Programs(fruitless=4, longest_fruitless=54.0), LINK, None),
        # It was, often enough; in a longer job it may be again.
        (Programs(fruitless=5, longest_fruitless=54.0), LINK, "too-long"),
        (Programs(fruitless=5, longest_fruitless=54.0), Room(60.0, 60.0), None),
        # What saves may begin in any job, however long it takes.
        (
            Programs(saves=True, finished=1, finished_seconds=600, shortest_finishing=600),
            LINK,
            None,
        ),
        (Programs(saves=True, fruitless=9, longest_fruitless=54.0), LINK, None),
        # What never saved begins where it can finish.
        (NINETY, LINK, "too-long"),
        (NINETY, Room(95.0, 95.0), None),
        (NINETY, Room(95.0, 600.0), None),
        (NINETY, Room(80.0, 600.0), "late"),
        # At the end of a job that has done something, where most of them can.
        (NINETY, Room(95.0, 600.0, has_begun=True), "late"),
        (NINETY, Room(100.0, 600.0, has_begun=True), None),
        # What saves needs the time to start.
        (Programs(saves=True), Room(0.0, 54.0, has_begun=True), "late"),
        (Programs(saves=True), Room(1.0, 54.0, has_begun=True), None),
        (
            Programs(saves=True, longest_fruitless=5.0, shortest_saving=30.0),
            Room(4.0, 54.0, has_begun=True),
            "late",
        ),
        # A start that was slow once does not keep later ones from what is enough for them.
        (
            Programs(saves=True, longest_fruitless=50.0, shortest_saving=6.0),
            Room(7.0, 54.0, has_begun=True),
            None,
        ),
    ],
)
def test_what_begins_where(known: Programs, room: Room, why: str | None) -> None:
    assert refusal(known, room) == why


def test_a_refusal_says_the_lengths_and_what_to_do() -> None:
    said = explain(NINETY, LINK, "abc")
    assert "leaves them 54 s" in said
    assert "none finished in less than 1m 30s" in said
    assert "--time" in said
    assert "`runyard sweep --resume abc`" in said
    said = explain(Programs(fruitless=5, longest_fruitless=3660.0), Room(3600.0, 3600.0), "abc")
    assert "leaves them 1h" in said
    assert "5 attempts in a row were cut off after up to 1h 1m" in said


class Job:
    """An agent in a job of its own, of so many useful seconds."""

    def __init__(self, client: Client, tracker: Tracker, sweep: Any, seconds: float = 54.0) -> None:
        self._agent = Agent(client, sweep["key"])
        self._tracker = tracker
        self._seconds = seconds

    def claim(self) -> Any:
        return self._agent.say(
            "claim", token=f"{self._agent.key}.1", seconds_left=self._seconds,
            seconds_whole=self._seconds, has_begun=False,
        ).json()  # fmt: skip

    def end(self, held: Any, seconds: float, exit_code: int, cause: str | None, **how: Any) -> None:
        """It ended after so long."""

        def began_then(connection: Any) -> None:
            connection.execute(
                "UPDATE trials SET began_at = began_at - ? WHERE sweep = ? AND number = ?",
                (seconds, self._agent.sweep, held["trial"]["number"]),
            )

        self._tracker._database.write(began_then).result()
        told = {"trial": held["trial"]["number"], "attempt": held["attempt"], "cause": cause}
        ended_at = held["trial"]["began_at"]
        told = {**told, "exit_code": exit_code, "ended_at": ended_at, **how}
        # Told twice, it is learnt once.
        for _ in range(2):
            assert self._agent.say("ends", **told).status == 200


def test_the_next_agent_knows_that_programs_save(client: Client, tracker: Tracker) -> None:
    sweep = create(client)
    first = Job(client, tracker, sweep, 3600.0)
    held = first.claim()
    first.end(held, 90.0, 0, None, saved=True)
    assert Job(client, tracker, sweep).claim()["do"] == "run"


def test_exit_code_75_says_that_it_can_go_on(client: Client, tracker: Tracker) -> None:
    sweep = create(client)
    for seconds, code, cause in ((54.0, 75, "go-on"), (90.0, 0, None)):
        job = Job(client, tracker, sweep, 3600.0)
        job.end(job.claim(), seconds, code, cause)
    assert Job(client, tracker, sweep).claim()["do"] == "run"


def test_what_is_too_long_is_refused_and_the_sweep_says_why(
    client: Client, tracker: Tracker
) -> None:
    sweep = create(client)
    first = Job(client, tracker, sweep, 3600.0)
    first.end(first.claim(), 90.0, 0, None)
    refused = Job(client, tracker, sweep).claim()
    assert (refused["do"], refused["refusal"]) == ("exit", "too-long")
    assert show(client, sweep)["cause"] == refused["why"]
    assert "none finished in less than 1m 30s" in refused["why"]
    # Where there is room, it begins, and the sweep does not say so any more.
    assert Job(client, tracker, sweep, 3600.0).claim()["do"] == "run"
    assert show(client, sweep)["cause"] is None
    # Somebody says that the programs are others now.
    assert Job(client, tracker, sweep).claim()["do"] == "exit"
    assert set_state(client, sweep, "running").json()["cause"] is None
    assert Job(client, tracker, sweep).claim()["do"] == "run"


@pytest.mark.parametrize(
    ("rows", "most"),
    [
        ([1] * 9, 6),  # It logs the same row again each time.
        (range(1, 10), 9),
        ([0] * 9, 9),  # Nobody sees what it does: it may have a file of its own.
    ],
)
def test_what_is_cut_off_for_nothing_again_and_again(
    client: Client, tracker: Tracker, rows: Sequence[int], most: int
) -> None:
    """In a chain, where being cut off uses up no tries."""
    sweep = create(client, {**GRID, "run_cap": 1})
    begun = 0
    for count in rows:
        job = Job(client, tracker, sweep)
        held = job.claim()
        if held["do"] != "run":
            assert "5 attempts in a row" in held["why"]
            break
        begun += 1
        log(client, held, *[0.5] * count)
        job.end(held, 54.0, -15, "go-on")
    assert begun == most
