"""Who worked on a sweep, and every attempt: what reports are made of."""

from __future__ import annotations

from typing import Any

from tests.server.asgi import Client
from tests.server.sweeping import Agent, create


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
