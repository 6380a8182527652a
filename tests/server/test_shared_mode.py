"""Several writers at once, one run."""

from __future__ import annotations

import json

from runyard.server.tracker import Tracker
from tests.server.asgi import Client
from tests.server.processes import Process, history_of, run_of


def test_two_writers_that_count_alike(client: Client, tracker: Tracker) -> None:
    one, two = Process(client, writer="w1"), Process(client, writer="w2")
    one.start({"a": 1, "same": "one"}, tags=["x"], internals={"e": {"w1": {"host": "h1"}}})
    bucket = two.start({"b": 2, "same": "two"}, tags=["y"], internals={"e": {"w2": {}}})
    assert bucket["tags"] == ["x", "y"]
    config = json.loads(bucket["config"])
    assert config["_wandb"]["value"].pop("e") == {"w1": {"host": "h1"}, "w2": {}}
    for _ in range(2):  # Everything is sent again.
        one.log(0, range(3))
        two.log(0, range(2))
        two.log(1, range(1, 4))
    one.log(3, [3])
    expected = [(step, one.started_at) for step in range(4)]
    expected += [(step, two.started_at) for step in range(4)]
    assert sorted(history_of(tracker)) == sorted(expected)
    one.post({"wandb-summary.json": (0, ['{"loss": 1, "one": 1}'])})
    two.post({"wandb-summary.json": (0, ['{"loss": 2, "two": 2}'])})
    run = run_of(client)
    assert run["summary"] == {"loss": 2, "one": 1, "two": 2}
    assert run["config"] == {"a": 1, "b": 2, "same": "two"}
    assert run["tags"] == ["x", "y"]


def test_the_console_of_every_writer(client: Client) -> None:
    one, two = Process(client, writer="w1"), Process(client, writer="w2")
    one.start()
    two.start()
    one.post({"output.log": (0, ["[rank0] a"])})
    two.post({"output.log": (0, ["[rank1] b"])})
    one.post({"output.log": (1, ["[rank0] c"])})
    text = client.get("/api/runs/1/console").json()["text"]
    assert sorted(text.split("\n")) == ["", "[rank0] a", "[rank0] c", "[rank1] b"]


def test_a_writer_that_joins_after_the_first_has_finished(client: Client, tracker: Tracker) -> None:
    one, two = Process(client, writer="w1"), Process(client, writer="w2")
    one.start()
    one.log(0, range(3))
    one.finish()
    assert two.start()["historyLineCount"] == 3
    two.log(3, range(2))
    assert len(history_of(tracker)) == 5
    assert run_of(client)["archives"] == []


def test_an_ordinary_client_is_no_writer_whatever_it_is_called(client: Client) -> None:
    answer = client.request(
        "POST",
        "/graphql",
        [json.dumps({"query": "{ viewer { entity } }"}).encode()],
        headers={"x-wandb-client-id": "w1"},
    )
    assert answer.status == 200
