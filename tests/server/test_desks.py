"""The line of a sweep: claims that arrive together, or again, and what they come to."""

from __future__ import annotations

import asyncio
from typing import Any

from runyard.server.sweeps.desks import Answer
from runyard.server.tracker import Tracker
from tests.server.asgi import Client
from tests.server.sweeping import Agent, create, show


def _claim_at_once(tracker: Tracker, *claims: tuple[int, str]) -> list[Answer]:
    """Claims (agent, token) that stand in line together, and so share one transaction."""

    async def claim() -> list[Answer]:
        return await asyncio.gather(
            *(tracker.sweeps.claim(agent, token) for agent, token in claims)
        )

    return asyncio.run(claim())


def _trial(answer: Answer) -> Any:
    assert answer.handed is not None
    return answer.handed.trial["number"], answer.handed.attempt


def test_a_claim_that_is_repeated_in_the_same_round_gets_the_same_trial(
    client: Client, tracker: Tracker
) -> None:
    sweep = create(client)
    agent = Agent(client, sweep["key"])
    first, again, other = _claim_at_once(
        tracker, (agent.key, "t1"), (agent.key, "t1"), (agent.key, "t2")
    )
    assert _trial(first) == _trial(again) == (1, 1)
    assert _trial(other) == (2, 1)
    assert show(client, sweep)["counts"]["running"] == 2


def test_a_claim_that_is_repeated_for_a_trial_that_waits_gets_it_once(
    client: Client, tracker: Tracker
) -> None:
    sweep = create(client)
    agent = Agent(client, sweep["key"])
    agent.end(agent.claim(), 75)
    agent.end(agent.claim(), 75)
    first, again = _claim_at_once(tracker, (agent.key, "t1"), (agent.key, "t1"))
    assert _trial(first) == _trial(again) == (1, 3)
