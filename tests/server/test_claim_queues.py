"""The line of a sweep: claims that arrive together, or again, and what they come to."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from runyard.reading.documents import MOST_NODES
from runyard.server.sweeps.ledger.claims import Round
from runyard.server.sweeps.ledger.new_trials import Claim
from runyard.server.sweeps.serving.claim_queues import AT_ONCE, Answer, ClaimQueues
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


def test_sweeps_whose_search_takes_its_time_keep_no_other_sweep_waiting(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many of them as claims are read at once; each waits for its first fit."""
    slow = [Agent(client, create(client)["key"]) for _ in range(AT_ONCE + 1)]
    quick = Agent(client, create(client)["key"])
    are_answered = asyncio.Event()
    serve = ClaimQueues.serve

    async def serve_late(
        self: ClaimQueues, sweep: int, line: list[Claim], crowd: asyncio.Event
    ) -> Round:
        # In place of a fit of seconds: one that ends when the test says so.
        if sweep != quick.sweep:
            await are_answered.wait()
        return await serve(self, sweep, line, crowd)

    monkeypatch.setattr(ClaimQueues, "serve", serve_late)

    async def ask(agent: Agent) -> Any:
        body = json.dumps({"token": f"t{agent.key}"}).encode()
        answer = await client.exchange("POST", f"/api/agents/{agent.key}/claim", [body])
        return answer.json()["do"]

    async def ask_after_the_others() -> Any:
        await asyncio.sleep(0.05)
        try:
            return await asyncio.wait_for(ask(quick), 20)
        finally:
            are_answered.set()

    answers = client.together(*(ask(agent) for agent in slow), ask_after_the_others())
    assert set(answers) == {"run"}


def test_what_goes_wrong_once_does_not_end_the_tidying_up(
    client: Client, tracker: Tracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sweeps that are over are forgotten, though the store could not be read the first time."""
    sweep = create(client)
    agent = Agent(client, sweep["key"])
    agent.claim()
    client.post(f"/api/sweeps/{sweep['key']}/state", {"state": "finished"})
    queues, read, calls = tracker.sweeps, tracker.read, 0
    monkeypatch.setattr("runyard.server.sweeps.serving.claim_queues._FORGET_EVERY", 0.01)

    async def fail_once(*call: Any, **more: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise OSError("no such luck")
        return await read(*call, **more)

    monkeypatch.setattr(tracker, "read", fail_once)

    async def forget() -> None:
        forgetting = asyncio.create_task(queues.forget_ended())
        for _ in range(6000):
            await asyncio.sleep(0.01)
            if forgetting.done() or sweep["key"] not in queues._plans:
                break
        forgetting.cancel()

    assert sweep["key"] in queues._plans
    client.together(forget())
    assert sweep["key"] not in queues._plans


def test_a_list_longer_than_a_file_may_be_is_handed_out(client: Client) -> None:
    lines = [f"line{number}" for number in range(MOST_NODES + 1)]
    sweep = create(
        client,
        {"program": "a.py", "method": "grid", "parameters": {"line": {"values": lines}}},
    )
    assert Agent(client, sweep["key"]).claim()["args"]["line"] == "line0"
