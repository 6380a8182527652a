"""Trials that are stopped early: judged on every report, told by the stream, kept with all rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from runyard.home import Home
from runyard.server.app import create_app
from runyard.server.sweeps.ledger import results
from runyard.server.sweeps.ledger import trials as stored_trials
from runyard.server.tracker import Tracker
from tests.server.asgi import KEY, Client
from tests.server.sweeping import GRID, Agent, create, log, show, trials

HYPERBAND = {**GRID, "early_terminate": {"type": "hyperband", "min_iter": 2, "eta": 3}}
ASHA = {
    **GRID,
    "runyard": {"early_terminate": {"type": "asha", "min_iter": 2, "max_iter": 8, "eta": 2}},
}
PROMOTION = {
    **GRID,
    "run_cap": 4,
    "runyard": {
        "early_terminate": {
            "type": "asha", "form": "promotion", "min_iter": 1, "max_iter": 4, "eta": 2,
        }
    },
}  # fmt: skip


@pytest.mark.parametrize("config", [HYPERBAND, ASHA])
def test_the_worse_of_two_is_stopped_with_its_report(client: Client, config: Any) -> None:
    sweep = create(client, config)
    agent = Agent(client, sweep["key"])
    good, bad = agent.claim(), agent.claim()
    assert log(client, good, 1.0, 0.9) == {"exitcode": None, "limits": {}}
    assert "stopped" not in log(client, bad, 5.0)
    # In the very answer to the report that shows it.
    assert log(client, bad, 4.0, start=1)["stopped"] is True
    assert "stopped" not in log(client, good, 0.8, start=2)
    # The client ends the program, which may log on until then; no row is lost.
    log(client, bad, 3.9, start=2)
    assert agent.renew(good, bad) == []
    ended = agent.end(bad, 255)
    assert (ended["state"], ended["value"], ended["cause"]) == ("stopped", 3.9, "stopped")
    run = client.get("/api/run", name=bad["trial"]["id"]).json()
    assert (run["state"], run["steps"]) == ("killed", 3)
    assert agent.end(good)["state"] == "finished"


def test_a_report_that_comes_twice_counts_once(client: Client) -> None:
    sweep = create(client, HYPERBAND)
    agent = Agent(client, sweep["key"])
    good, bad = agent.claim(), agent.claim()
    log(client, good, 1.0, 0.9)
    for _ in range(3):
        assert "stopped" not in log(client, bad, 5.0)
    log(client, bad, 5.0, 4.0)
    assert trials(client, sweep)[1]["state"] == "running"
    assert log(client, bad, 4.0, start=1)["stopped"] is True


def test_only_numbers_of_the_metric_count(client: Client) -> None:
    sweep = create(client, HYPERBAND)
    agent = Agent(client, sweep["key"])
    good, bad = agent.claim(), agent.claim()
    log(client, good, 1.0, 0.9)
    run = bad["run"]
    lines = [
        '{"_step":0,"loss":5.0}',
        '{"_step":1,"loss":NaN}',
        '{"_step":2,"other":1.0}',
        '{"_step":3,"loss":true}',
        '{"_step":4,"loss":"4"}',
    ]
    place = f"/files/{run['entity']}/{run['project']}/{run['id']}/file_stream"
    files = {"wandb-history.jsonl": {"offset": 0, "content": lines}}
    assert "stopped" not in client.post(place, {"files": files}).json()
    assert log(client, bad, 5.0, start=5)["stopped"] is True


def test_judgement_after_a_restart_is_the_same(
    home: Home, monkeypatch: pytest.MonkeyPatch, serve: Callable[[], Client]
) -> None:
    client = serve()
    sweep = create(client, HYPERBAND)
    agent = Agent(client, sweep["key"])
    good, bad = agent.claim(), agent.claim()
    log(client, good, 1.0, 0.9)
    log(client, bad, 5.0)
    again = serve()
    assert log(again, bad, 4.0, start=1)["stopped"] is True


@pytest.fixture
def serve(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Client]]:
    """A server over the state folder; called again, another one over the same."""
    monkeypatch.setenv("LOGNAME", "ada")
    opened: list[tuple[Tracker, Client]] = []

    def close() -> None:
        while opened:
            tracker, client = opened.pop()
            client.close()
            tracker.close()

    def start() -> Client:
        close()
        tracker = Tracker(home)
        tracker.open(KEY)
        opened.append((tracker, Client(create_app(tracker, stop=lambda: None))))
        return opened[0][1]

    yield start
    close()


def test_paused_trials_go_on_when_they_turn_out_well(client: Client) -> None:
    sweep = create(client, PROMOTION)
    agent = Agent(client, sweep["key"])
    rows: dict[str, int] = {}
    order = []
    while (held := agent.claim())["do"] == "run":
        trial = held["trial"]
        order.append(trial["number"])
        # The first is the best; each logs until it is told to pause, or has four rows.
        while rows.get(trial["id"], 0) < 4:
            start = rows.get(trial["id"], 0)
            rows[trial["id"]] = start + 1
            if log(client, held, float(trial["number"]), start=start).get("stopped"):
                assert agent.end(held, 255)["state"] == "paused"
                break
        else:
            agent.end(held)
        assert len(order) < 20
    over = show(client, sweep)
    assert over["state"] == "finished"
    assert over["counts"]["paused"] == 0
    assert over["counts"]["finished"] + over["counts"]["stopped"] == 4
    # The second was not among the best half of two, but is among that of four: it goes on.
    assert order == [1, 2, 3, 4, 2]
    assert over["attempts"] == 5
    assert list(rows.values()) == [4, 2, 1, 1]
    found = trials(client, sweep)
    assert [trial["state"] for trial in found] == ["finished", "stopped", "stopped", "stopped"]
    assert [trial["value"] for trial in found] == [1.0, 2.0, 3.0, 4.0]


def test_what_a_paused_trial_has_reached_is_known_to_the_search(
    client: Client, tracker: Tracker
) -> None:
    space = {"x": {"min": 0.0, "max": 1.0}}
    sweep = create(client, {**PROMOTION, "method": "random", "parameters": space, "run_cap": 9})
    agent = Agent(client, sweep["key"])
    good, bad = agent.claim(), agent.claim()
    assert not log(client, good, 1.0).get("stopped")
    assert log(client, bad, 2.0).get("stopped")
    assert agent.end(bad, 255)["state"] == "paused"

    def view() -> results.View:
        found = tracker._database.read(lambda store: results.view(store, sweep["key"], 0)).result()
        assert found is not None
        return found

    assert [result["values"] for result in view().results] == [[2.0]]
    assert len(view().pending or ()) == 1
    tracker._database.write(lambda store: stored_trials.promote(store, sweep["key"], 2)).result()
    # It goes on: what it will reach is open again.
    assert view().results == []
    assert len(view().pending or ()) == 2


def test_a_target_that_is_reached_while_it_runs(client: Client) -> None:
    config = {**GRID, "metric": {"name": "loss", "goal": "minimize", "target": 0.5}}
    sweep = create(client, config)
    agent = Agent(client, sweep["key"])
    held = agent.claim()
    log(client, held, 0.4)
    assert agent.claim()["do"] == "wait"
    assert agent.end(held)["state"] == "finished"
    assert show(client, sweep)["state"] == "finished"


def test_a_nested_metric(client: Client) -> None:
    config = {**HYPERBAND, "metric": {"name": "val.loss", "goal": "maximize"}}
    sweep = create(client, config)
    agent = Agent(client, sweep["key"])
    held = [agent.claim(), agent.claim()]
    told = []
    for one, value in zip(held, (0.9, 0.2), strict=True):
        run = one["run"]
        lines = [json.dumps({"_step": step, "val": {"loss": value}}) for step in range(2)]
        files = {"wandb-history.jsonl": {"offset": 0, "content": lines}}
        place = f"/files/{run['entity']}/{run['project']}/{run['id']}/file_stream"
        told.append("stopped" in client.post(place, {"files": files}).json())
    assert told == [False, True]
    assert agent.end(held[1], 255)["value"] == 0.2
