"""What the search sees of trials: their best values, means over seeds, what stands for no value."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runyard.server.sweeps.ledger import results
from runyard.server.tracker import Tracker
from tests.server.asgi import Client
from tests.server.sweeping import Agent, create, log, show

# Random draws have points, too: no search process is needed to see what one would be told.
RANDOM = {
    "method": "random",
    "metric": {"name": "loss", "goal": "minimize"},
    "parameters": {"x": {"min": 0.0, "max": 1.0}},
    "runyard": {"stop_after_failures": 0},
}


def _view(tracker: Tracker, sweep: Any, since: int = 0) -> results.View:
    found = tracker._database.read(
        lambda connection: results.view(connection, sweep["key"], since)
    ).result()
    assert found is not None
    return found


def _values(tracker: Tracker, sweep: Any) -> list[list[float]]:
    return [result["values"] for result in _view(tracker, sweep).results]


def test_the_best_value_of_what_finished(client: Client, tracker: Tracker) -> None:
    sweep = create(client, {**RANDOM, "metric": {"name": "loss", "goal": "maximize"}})
    agent = Agent(client, sweep["key"])
    held, other, failed = agent.claim(), agent.claim(), agent.claim()
    log(client, held, 1.0, float("inf"), 3.0, float("nan"), 2.0)
    log(client, failed, 9.0)
    agent.end(held)
    agent.end(failed, 1)
    view = _view(tracker, sweep)
    # To be made small; what failed has no value.
    assert [result["values"] for result in view.results] == [[-3.0], []]
    assert view.results[0]["point"] == [pytest.approx(held["args"]["x"])]
    assert view.pending is not None
    assert [json.loads(point) for point in view.pending] == [[pytest.approx(other["args"]["x"])]]
    assert (view.at_work, view.setting) == (1, 3)
    # Told once: only what has ended since comes the next time.
    assert _view(tracker, sweep, view.upto).results == []


@pytest.mark.parametrize(
    ("impute", "stopped", "failed"),
    [(None, 2.0, None), ("worst", 8.0, 8.0), ("best", 2.0, 4.0), ("latest", 3.0, 6.0)],
)
def test_what_stands_for_a_value(
    client: Client,
    tracker: Tracker,
    impute: str | None,
    stopped: float,
    failed: float | None,
) -> None:
    metric = {"name": "loss", "goal": "minimize"} | ({"impute": impute} if impute else {})
    sweep = create(client, {**RANDOM, "metric": metric})
    agent = Agent(client, sweep["key"])
    done, cut, bad = agent.claim(), agent.claim(), agent.claim()
    log(client, done, 8.0)
    log(client, cut, 5.0, 2.0, 3.0)
    log(client, bad, 4.0, 6.0)
    agent.end(done)
    agent.end(cut, 255, "stopped")
    agent.end(bad, 1)
    assert _values(tracker, sweep) == [[8.0], [stopped], [] if failed is None else [failed]]


def test_a_setting_is_the_mean_of_its_seeds(client: Client, tracker: Tracker) -> None:
    config = {**RANDOM, "runyard": {"seeds": 3, "stop_after_failures": 0}}
    sweep = create(client, config)
    agent = Agent(client, sweep["key"])
    held = [agent.claim() for _ in range(6)]
    assert len({one["args"]["x"] for one in held}) == 2
    for one, value in zip(held[:3], (1.0, 2.0, 6.0), strict=True):
        assert _values(tracker, sweep) == []
        log(client, one, value)
        agent.end(one)
    assert _values(tracker, sweep) == [[3.0]]
    for one, value in zip(held[3:], (1.0, 2.0, 6.0), strict=True):
        log(client, one, value)
        agent.end(one, 1 if value == 6.0 else 0)
    # One that failed has no part in the mean.
    assert _values(tracker, sweep) == [[3.0], [1.5]]
    assert show(client, sweep)["best"]["value"] == 1.0


def test_limits_and_several_metrics(client: Client, tracker: Tracker) -> None:
    sweep = create(
        client,
        {
            **RANDOM,
            "method": "random",
            "runyard": {"constraints": [{"metric": "loss", "max": 2.0}]},
        },
    )
    agent = Agent(client, sweep["key"])
    for value in (1.5, 5.0):
        held = agent.claim()
        log(client, held, value)
        agent.end(held)
    assert [one["constraints"] for one in _view(tracker, sweep).results] == [[-0.5], [3.0]]
