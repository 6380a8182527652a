"""No setting is handed out twice while there are others, whatever the search says."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
from collections.abc import Sequence
from typing import Any

import pytest

from runyard.home import Home
from runyard.search.sweep import read_sweep
from runyard.server.sweeps.ledger import results
from runyard.server.sweeps.serving.handed_out import HandedOut
from runyard.server.sweeps.serving.suggestions import Suggestions
from runyard.server.tracker import Tracker
from tests.server.asgi import KEY, Client
from tests.server.sweeping import Agent, create, log, trials

BAYES: dict[str, Any] = {
    "method": "bayes",
    "program": "train.py",
    "metric": {"name": "loss"},
    "parameters": {"x": {"min": 0.0, "max": 1.0}, "y": {"min": 0.0, "max": 1.0}},
}
PROMOTION = {
    **BAYES,
    "run_cap": 9,
    "runyard": {
        "early_terminate": {
            "type": "asha", "form": "promotion", "min_iter": 1, "max_iter": 4, "eta": 2,
        }
    },
}  # fmt: skip


_tokens = itertools.count()


class Stubborn:
    """In place of the search's process: one that says the same at once, whatever it is told."""

    def __init__(self) -> None:
        self.is_alive = False
        # What it would know: results by their number, in the order of their ending.
        self.known: list[dict[str, Any]] = []

    async def start(self, config: Any, seed: int) -> None:
        self.is_alive = True
        await self.open(config, seed)

    async def open(self, config: Any, seed: int) -> None:
        self.known = []

    async def add(self, told: Sequence[dict[str, Any]]) -> None:
        self.known += told

    async def suggest(
        self, pending: Sequence[str], count: int, number: int
    ) -> list[tuple[float, ...]]:
        return [(0.5, 0.5)] * count

    async def stop(self) -> None:
        self.is_alive = False


@pytest.fixture
def stubborn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runyard.server.sweeps.serving.suggestions.SearchWorker", Stubborn)


async def _work(tracker: Tracker, agents: Sequence[int], rounds: int) -> None:
    """Each agent takes a trial, for as many rounds; nothing of it ends."""
    for _ in range(rounds):
        await asyncio.gather(
            *(tracker.sweeps.claim(agent, f"token{next(_tokens)}") for agent in agents)
        )
        await asyncio.sleep(0)  # Whoever makes suggestions has its turn.
    await tracker.sweeps.close()


def _settings(client: Client, sweep: Any) -> list[str]:
    return [json.dumps(one["values"], sort_keys=True) for one in trials(client, sweep)]


@pytest.mark.usefixtures("stubborn")
def test_what_the_search_says_again_is_not_handed_out_again(
    client: Client, tracker: Tracker
) -> None:
    sweep = create(client, BAYES)
    agents = [Agent(client, sweep["key"]).key for _ in range(4)]
    first = Agent(client, sweep["key"])
    first.end(first.claim())
    # In the loop of the requests before: the search may still work there.
    client.together(_work(tracker, agents, 5))
    settings = _settings(client, sweep)
    assert len(settings) == 21
    assert len(set(settings)) == len(settings)
    assert json.dumps({"x": 0.5, "y": 0.5}) in settings, "once, it is taken"


@pytest.mark.usefixtures("stubborn")
def test_what_was_handed_out_before_a_restart_is_known_after_it(
    client: Client, tracker: Tracker, home: Home
) -> None:
    sweep = create(client, BAYES)
    agents = [Agent(client, sweep["key"]).key for _ in range(3)]
    first = Agent(client, sweep["key"])
    first.end(first.claim())
    # In the loop of the requests before: the search may still work there.
    client.together(_work(tracker, agents, 2))
    tracker.close()
    again = Tracker(home)
    again.open(KEY)
    try:
        asyncio.run(_work(again, agents, 3))
        texts = again._database.read(
            lambda store: [row[0] for row in store.execute("SELECT settings FROM trials")]
        ).result()
    finally:
        again.close()
    assert len(set(texts)) == len(texts) == 16
    assert sum(json.loads(text) == {"x": 0.5, "y": 0.5} for text in texts) == 1


def test_a_space_that_is_used_up_repeats_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    small = {"a": {"values": [1, 2]}, "b": {"min": 1, "max": 3}}
    sweep, _ = read_sweep({**BAYES, "parameters": small})
    assert sweep is not None
    handed_out = HandedOut(sweep.space, 1)
    settings = []
    with caplog.at_level(logging.WARNING):
        for number in range(6):
            point = handed_out.spread(number, ())
            handed_out.add([point])
            settings.append(str(sweep.space.decode(point)))
        assert len(set(settings)) == 6
        assert not caplog.records
        handed_out.spread(6, ())
        handed_out.spread(7, ())
    assert [record.getMessage() for record in caplog.records] == [
        "a sweep has handed out every setting that it can have: they repeat now"
    ]


def test_what_is_ready_may_be_handed_out_while_more_is_made() -> None:
    """A question that is open while a claim takes what lies ready does not bring that back."""

    async def claims() -> list[Any]:
        sweep, _ = read_sweep(BAYES)
        assert sweep is not None
        made = Suggestions(None, 1, sweep, BAYES, 1, HandedOut(sweep.space, 1))  # type: ignore[arg-type]

        async def view() -> results.View:
            return results.View(pending=[])

        async def suggest(*_: Any) -> list[Any]:
            made._ready = []  # Taken by a claim meanwhile.
            return ["new"]

        made._ready = ["taken"]  # type: ignore[list-item]
        made._catch_up = view  # type: ignore[method-assign,assignment]
        made._suggest = suggest  # type: ignore[method-assign,assignment]
        await made._ask(0)
        return made._ready

    assert asyncio.run(claims()) == ["new"]


@pytest.mark.usefixtures("stubborn")
def test_a_paused_trial_that_went_on_counts_once(client: Client, tracker: Tracker) -> None:
    """With what it reached in the end, and not with what it had when it was paused as well."""
    sweep = create(client, PROMOTION)
    agent = Agent(client, sweep["key"])
    good, bad = agent.claim(), agent.claim()
    assert not log(client, good, 1.0).get("stopped")
    assert log(client, bad, 2.0).get("stopped")
    assert agent.end(bad, 255)["state"] == "paused"
    suggestions = tracker.sweeps._suggestions[sweep["key"]]
    worker: Any = suggestions._worker

    async def catch_up() -> None:
        async with suggestions._turn:
            await suggestions._catch_up()

    def known() -> list[tuple[int, list[float]]]:
        client.together(catch_up())
        return [(one["number"], one["values"]) for one in worker.known]

    assert known() == [(1, [2.0])]
    for value in (3.0, 4.0):
        other = agent.claim()
        if other["trial"]["number"] == bad["trial"]["number"]:
            break
        log(client, other, value)
        agent.end(other, 255)
    while (again := agent.claim())["trial"]["number"] != bad["trial"]["number"]:
        log(client, again, 9.0)
        agent.end(again, 255)
    numbers = [number for number, _ in known()]
    assert 1 not in numbers, "what it will reach is open again"
    log(client, again, 0.5, start=1)
    agent.end(again, 0)
    agent.end(good, 0)
    found = known()
    assert len({number for number, _ in found}) == len(found)
    assert (1, [0.5]) in found
    client.together(tracker.sweeps.close())
