"""Agents hear of runs that their client has ended while the program runs on."""

from __future__ import annotations

import time
from typing import Any

import pytest

from runyard.cli.watching.status import _agent_lines
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


def test_a_sweep_tells_whose_program_runs_on(client: Client) -> None:
    sweep = create(client)["key"]
    agent = Agent(client, sweep)
    held = agent.claim()

    def over_since() -> float | None:
        (shown,) = client.get(f"/api/sweeps/{sweep}").json()["agents"]
        since: float | None = shown["over_since"]
        return since

    process = Process(client, held["run"]["id"])
    process.start()
    process.log(0, range(3))
    assert over_since() is None
    process.finish(3)
    since = over_since()
    assert since is not None
    assert time.time() - since < 3600
    agent.end(held, exit_code=3)
    assert over_since() is None


@pytest.mark.parametrize(("seconds", "is_told"), [(None, False), (0, False), (600, True)])
def test_status_says_so(seconds: int | None, is_told: bool) -> None:
    since = None if seconds is None else time.time() - seconds
    agent = {"key": 4, "slots": 1, "running": 1, "job": None, "pid": None, "host": "here"}
    sweep: Any = {"agents": [{**agent, "usage": None, "packing": None, "over_since": since}]}
    said = " ".join(text for text, _ in _agent_lines(sweep))
    assert ("runs on for 10 min after its run has ended" in said) == is_told
