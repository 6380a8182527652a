"""Who worked on a sweep, and every attempt: what reports are made of."""

from __future__ import annotations

from typing import Any

from tests.server.asgi import Client
from tests.server.sweeping import Agent, create, show


def _work(client: Client, sweep: Any) -> Any:
    return client.get(f"/api/sweeps/{sweep['key']}/work").json()


def test_each_attempt_has_its_own_agent_cause_and_usage(client: Client) -> None:
    sweep = create(client)
    first = Agent(client, sweep["key"])
    held = first.claim()
    usage = {"cpu_seconds": 3.5, "memory_peak": 1 << 20, "vram_total": 80 << 30}
    first.say("renew", running=[{"trial": 1, "attempt": held["attempt"], "usage": usage}])
    first.end(held, 143, "preempted")
    first.leave()
    second = Agent(client, sweep["key"])
    again = second.claim()
    assert again["trial"]["number"] == 1
    second.end(again, 3)
    running = second.claim()

    found = _work(client, sweep)
    assert [one["key"] for one in found["agents"]] == [first.key, second.key]
    assert [one["left_at"] is None for one in found["agents"]] == [False, True]
    told = [(one["trial"], one["number"], one["agent"], one["cause"]) for one in found["attempts"]]
    assert told == [
        (1, 1, first.key, "preempted"),
        (1, 2, second.key, "program"),
        (running["trial"]["number"], 1, second.key, None),
    ]
    assert found["attempts"][0]["usage"] == usage
    assert found["attempts"][1]["exit_code"] == 3
    assert found["causes"]["program"] == "the program failed"


def test_a_signal_is_a_cause_in_the_ledgers_words(client: Client) -> None:
    sweep = create(client)
    agent = Agent(client, sweep["key"])
    agent.end(agent.claim(), -6)
    agent.end(agent.claim(), -9)
    causes = [one["cause"] for one in _work(client, sweep)["attempts"]]
    assert causes == ["signal", "node"]


def test_what_one_may_not_read_is_not_there(client: Client) -> None:
    sweep = create(client)
    assert client.get("/api/sweeps/999999/work").status == 404
    assert client.get(f"/api/sweeps/{sweep['key']}/work", key="wrong").status == 401


def test_how_gpus_are_shared_is_told_once(client: Client) -> None:
    sweep = create(client)
    agent = Agent(client, sweep["key"])
    scope = f"/api/live?sweep={sweep['key']}"
    line = "GPU 0: 8 at a time (16 did not get more done)"

    def renew(packing: str) -> Any:
        begin = client.get(scope).json()["revision"]
        assert agent.say("renew", running=[], slots=8, packing=packing).status == 200
        return client.get(f"{scope}&since={begin}").json()["agents"]

    assert show(client, sweep)["agents"][0]["packing"] is None
    assert renew(line)
    assert show(client, sweep)["agents"][0]["packing"] == line
    assert client.get("/api/agents").json()["agents"][0]["packing"] == line
    assert not renew(line)
    agent.renew()
    assert show(client, sweep)["agents"][0]["packing"] == line
    # One line of bearable length, whatever comes.
    assert renew(f"GPU 0:\n{'x' * 5000}")
    text = show(client, sweep)["agents"][0]["packing"]
    assert text == f"GPU 0: {'x' * 993}"
