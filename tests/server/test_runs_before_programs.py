"""Agents hear of runs that their client has ended while the program runs on."""

from __future__ import annotations

from tests.server.asgi import Client
from tests.server.processes import Process
from tests.server.sweeping import Agent, create


def test_a_run_is_over_until_another_client_goes_on_with_it(client: Client) -> None:
    agent = Agent(client, create(client)["key"])
    held = agent.claim()
    running = [{"trial": held["trial"]["number"], "attempt": held["attempt"]}]

    def over() -> object:
        return agent.say("renew", running=running, slots=1).json()["over"]

    assert over() == [], "it has no client yet"
    first = Process(client, held["run"]["id"])
    first.start()
    first.log(0, range(3))
    assert over() == []
    first.finish(3)
    assert over() == [{**running[0], "exit_code": 3}]
    Process(client, held["run"]["id"]).start()
    assert over() == [], "the program has begun to log again"
