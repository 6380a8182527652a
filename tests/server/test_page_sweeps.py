"""A sweep for its page: trials as columns, the space, convergence, the front, what matters."""

from __future__ import annotations

import json
from typing import Any

from tests.server import sweeping
from tests.server.asgi import Client
from tests.server.persons import Person

SPACE = {
    "method": "random",
    "program": "train.py",
    "metric": {"name": "loss", "goal": "minimize"},
    "run_cap": 40,
    "parameters": {
        "lr": {"distribution": "log_uniform_values", "min": 1e-4, "max": 1e-1},
        "depth": {"distribution": "int_uniform", "min": 1, "max": 8},
        "opt": {"values": ["adam", "sgd", "lion"]},
        "net": {"parameters": {"width": {"values": [8, 16]}}},
        "fixed": {"value": 3},
    },
}


def run_trials(client: Client, sweep: Any, count: int, value: Any = None, code: int = 0) -> None:
    agent = sweeping.Agent(client, sweep["key"])
    for number in range(count):
        held = agent.claim()
        values = held["trial"]["values"]
        sweeping.log(client, held, value(values) if value else float(number))
        agent.end(held, code)


def columns(client: Client, sweep: Any, since: int | None = None) -> Any:
    query = "" if since is None else f"?since={since}"
    return client.get(f"/api/sweeps/{sweep['key']}/columns{query}").json()


def test_trials_as_columns_with_their_places_in_the_space(client: Client) -> None:
    sweep = sweeping.create(client, SPACE)
    run_trials(client, sweep, 5)
    found = columns(client, sweep)
    assert found["trials"]["number"] == [1, 2, 3, 4, 5]
    assert found["trials"]["state"] == ["finished"] * 5
    assert found["measured"]["loss"] == [0, 1, 2, 3, 4]
    drawn = {one["name"]: one for one in found["parameters"]}
    assert list(drawn) == ["lr", "depth", "opt", "net/width"]
    assert drawn["lr"]["said"] == "numbers on a log scale from 0.0001 to 0.1"
    assert drawn["depth"]["said"] == "whole numbers from 1 to 8"
    assert [tick["value"] for tick in drawn["opt"]["ticks"]] == ["adam", "sgd", "lion"]
    assert [tick["place"] for tick in drawn["opt"]["ticks"]] == [0, 0.5, 1]
    for value, place in zip(found["values"]["opt"], found["places"]["opt"], strict=True):
        assert place == {"adam": 0, "sgd": 0.5, "lion": 1}[value]
    for name in ("lr", "depth"):
        assert all(0 <= place <= 1 for place in found["places"][name])
    assert found["sweep"]["counts"]["finished"] == 5
    assert found["sweep"]["expected"] == 40


def test_only_the_trials_that_changed(client: Client) -> None:
    sweep = sweeping.create(client, SPACE)
    run_trials(client, sweep, 3)
    known = columns(client, sweep)
    run_trials(client, sweep, 1)
    later = columns(client, sweep, known["revision"])
    assert later["whole"] is False
    assert later["trials"]["number"] == [4]
    assert later["values"]["opt"] != []
    tag = client.get(f"/api/sweeps/{sweep['key']}/columns").headers["etag"]
    url = f"/api/sweeps/{sweep['key']}/columns"
    assert client.request("GET", url, headers={"if-none-match": tag}).status == 304


def test_the_best_so_far_in_the_order_of_ending(client: Client) -> None:
    sweep = sweeping.create(client, SPACE)
    heights = iter([5.0, 7.0, 4.0, 4.5, 1.0])
    run_trials(client, sweep, 5, lambda _: next(heights))
    found = columns(client, sweep)["convergence"]
    assert [(one["order"], one["number"], one["value"]) for one in found] == [
        (1, 1, 5),
        (3, 3, 4),
        (5, 5, 1),
    ]


def test_the_front_of_several_metrics(client: Client) -> None:
    config = {
        **SPACE,
        "metric": None,
        "runyard": {
            "metrics": [
                {"name": "loss", "goal": "minimize"},
                {"name": "speed", "goal": "maximize"},
            ]
        },
    }
    sweep = sweeping.create(client, {k: v for k, v in config.items() if v is not None})
    agent = sweeping.Agent(client, sweep["key"])
    for loss, speed in ((1, 1), (2, 5), (3, 4), (0.5, 0.5)):
        held = agent.claim()
        run = held["run"]
        row = json.dumps({"_step": 0, "loss": loss, "speed": speed})
        client.post(
            f"/files/{run['entity']}/{run['project']}/{run['id']}/file_stream",
            {"files": {"wandb-history.jsonl": {"offset": 0, "content": [row]}}},
        )
        agent.end(held)
    found = columns(client, sweep)
    assert [one["name"] for one in found["metrics"]] == ["loss", "speed"]
    assert found["front"] == [1, 2, 4]


def test_what_matters_is_told_with_how_sure_it_is(client: Client) -> None:
    sweep = sweeping.create(client, SPACE)
    url = f"/api/sweeps/{sweep['key']}/importance"
    few = client.get(url).json()
    assert (few["explained"], few["parameters"], few["trials"]) == (None, [], 0)
    run_trials(client, sweep, 40, lambda values: float(values["depth"]))
    found = client.get(url).json()
    first = found["parameters"][0]
    assert first["name"] == "depth"
    assert first["share"] > 0.7
    assert first["is_sure"] is True
    assert first["best"] == "lowest"
    assert found["explained"] > 0.7
    assert client.get(url + "?metric=nothing").json()["explained"] is None


def test_a_list_of_command_lines_shows_the_values_that_differ(client: Client) -> None:
    tasks = [
        {"name": f"seed{seed}", "command_line": f"train --seed {seed}", "values": {"seed": seed}}
        for seed in range(3)
    ]
    config = {
        "method": "grid",
        "parameters": {"task": {"values": [0, 1, 2]}},
        "command": ["/bin/sh", "-c", "${command_line}"],
        "runyard": {"tasks": tasks},
    }
    answer = client.post("/api/sweeps", {"config": config, "project": "birds"})
    assert answer.status == 200, answer.text
    sweep = answer.json()
    run_trials(client, sweep, 3)
    found = columns(client, sweep)
    assert [one["name"] for one in found["parameters"]] == ["seed"]
    assert found["values"]["seed"] == [0, 1, 2]
    assert found["places"]["seed"] == [0, 0.5, 1]


def test_agents_at_work_and_their_machines(client: Client, bob: Person) -> None:
    sweep = sweeping.create(client, SPACE)
    agent = sweeping.Agent(client, sweep["key"])
    held = agent.claim()
    running = {"trial": held["trial"]["number"], "attempt": held["attempt"]}
    begin = client.get("/api/live?jobs=1").json()["revision"]
    agent.say("renew", running=[{**running, "usage": {"gpu_use": 0.5, "memory_peak": 1 << 30}}])
    assert client.get(f"/api/live?jobs=1&since={begin}").json()["agents"] is True
    gone = sweeping.Agent(client, sweep["key"])
    gone.leave()
    found = client.get("/api/agents?gone=5").json()
    (one,) = found["agents"]
    assert (one["key"], one["sweep_id"], one["project"]) == (agent.key, sweep["id"], "birds")
    assert [trial["number"] for trial in one["running"]] == [held["trial"]["number"]]
    assert one["running"][0]["usage"] == {"gpu_use": 0.5, "memory_peak": 1 << 30}
    assert [left["key"] for left in found["gone"]] == [gone.key]
    assert [(node["name"], node["slots"], node["running"]) for node in found["nodes"]] == [
        ("node1", 1, 1)
    ]
    assert client.get("/api/agents", key=bob.key).json()["agents"] == []


def test_somebody_elses_sweep_is_not_there(client: Client, bob: Person) -> None:
    sweep = sweeping.create(client, SPACE)
    for path in ("columns", "importance"):
        assert client.get(f"/api/sweeps/{sweep['key']}/{path}", key=bob.key).status == 404
