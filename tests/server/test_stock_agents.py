"""W&B's own agents, by what their heartbeats say; the wire around it is GraphQL's."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from runyard.server.runs import runs
from runyard.server.sweeps.ledger import agents, leases
from runyard.server.sweeps.ledger.agents import NewAgent, NoAgent
from runyard.server.sweeps.serving.heartbeats import Command, heartbeat
from runyard.server.tracker import Tracker
from tests.server.asgi import Client
from tests.server.sweeping import create, set_state, show, trials

Result = TypeVar("Result")


class Stock:
    """An agent of W&B's: one run at a time, a heartbeat every few seconds."""

    def __init__(self, client: Client, tracker: Tracker, sweep: int) -> None:
        self._client = client
        self._tracker = tracker
        row = self._run(lambda: tracker.sweeps.begin_agent(sweep, NewAgent(1, "stock", "node1")))
        self.key: int = row["key"]

    def beat(self, *alive: str) -> Command | None:
        return self._run(
            lambda: heartbeat(self._tracker.sweeps, self.key, alive, self._tracker.started_at)
        )

    def _run(self, work: Callable[[], Awaitable[Result]]) -> Result:
        return self._client._loop.run_until_complete(work())


def _post(client: Client, run: str | None, **more: Any) -> Any:
    posted = client.post(f"/files/ada/birds/{run}/file_stream", {"files": {}, **more})
    assert posted.status == 200
    return posted.json()


def _state(tracker: Tracker, run: str | None) -> str:
    row = tracker._database.read(
        lambda connection: runs.by_path(connection, "ada", "birds", run or "")
    ).result()
    assert row is not None
    state: str = row["state"]
    return state


def test_a_run_after_the_other(client: Client, tracker: Tracker) -> None:
    sweep = create(client)
    agent = Stock(client, tracker, sweep["key"])
    for number in range(6):
        command = agent.beat()
        assert command is not None
        assert (command.type, command.program) == ("run", "train.py")
        assert command.args is not None
        assert set(command.args) == {"lr", "size"}
        if number == 0:
            assert command.args == {"lr": {"value": 0.1}, "size": {"value": 16}}
            assert _state(tracker, command.run_id) == "pending"
        assert agent.beat(command.run_id or "") is None
        _post(client, command.run_id, complete=True, exitcode=0)
    assert agent.beat() == Command("exit")
    assert show(client, sweep)["counts"]["finished"] == 6


def test_an_answer_that_got_lost_costs_nothing(client: Client, tracker: Tracker) -> None:
    sweep = create(client)
    agent = Stock(client, tracker, sweep["key"])
    first = agent.beat()
    again = agent.beat()
    assert first == again
    assert again is not None
    assert again.type == "run"
    assert [trial["attempts"] for trial in trials(client, sweep)] == [1]


def test_a_run_that_vanishes_is_resumed(client: Client, tracker: Tracker) -> None:
    sweep = create(client)
    agent = Stock(client, tracker, sweep["key"])
    first = agent.beat()
    assert first is not None
    agent.beat(first.run_id or "")
    again = agent.beat()
    assert again == Command("resume", first.run_id, first.args, "train.py")
    assert trials(client, sweep)[0]["attempts"] == 2


def test_a_preempted_run_goes_on_whenever_it_likes(client: Client, tracker: Tracker) -> None:
    sweep = create(client)
    agent = Stock(client, tracker, sweep["key"])
    first = agent.beat()
    assert first is not None
    _post(client, first.run_id, preempting=True)
    _post(client, first.run_id, complete=True, exitcode=1)
    assert trials(client, sweep)[0]["state"] == "waiting"
    again = agent.beat()
    assert again is not None
    assert (again.type, again.run_id) == ("resume", first.run_id)


def test_a_failed_run_is_not_run_again(client: Client, tracker: Tracker) -> None:
    sweep = create(client)
    agent = Stock(client, tracker, sweep["key"])
    first = agent.beat()
    assert first is not None
    _post(client, first.run_id, complete=True, exitcode=1)
    second = agent.beat()
    assert second is not None
    assert second.run_id != first.run_id
    assert [trial["state"] for trial in trials(client, sweep)] == ["failed", "running"]


def test_pause_stop_and_cancel(client: Client, tracker: Tracker) -> None:
    sweep = create(client)
    agent, idle = (Stock(client, tracker, sweep["key"]) for _ in range(2))
    first = agent.beat()
    assert first is not None
    run = first.run_id or ""
    set_state(client, sweep, "paused")
    assert agent.beat(run) is None
    assert idle.beat() is None
    set_state(client, sweep, "running")
    set_state(client, sweep, "finished")
    assert agent.beat(run) is None
    assert idle.beat() == Command("exit")
    set_state(client, sweep, "canceled")
    assert agent.beat(run) == Command("stop", run)
    assert agent.beat() == Command("exit")
    assert _state(tracker, run) == "killed"


@pytest.mark.parametrize("kind", ["stock", "function"])
def test_an_early_stop_is_first_told_to_the_client(
    client: Client, tracker: Tracker, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = create(client)
    agent = Stock(client, tracker, sweep["key"])
    if kind == "stock":  # It waits before its first beat; one inside a program does not.
        monkeypatch.setattr(agents, "_FIRST_POLL", 0.0)
    first = agent.beat()
    assert first is not None
    run = first.run_id or ""
    _post(client, run)
    key = trials(client, sweep)[0]["run"]
    client.post(f"/api/runs/{key}/stop", {})
    assert _post(client, run)["stopped"] is True
    if kind == "function":  # It does not listen to its client.
        assert agent.beat(run) == Command("stop", run)
    else:
        assert agent.beat(run) is None
        monkeypatch.setattr(agents, "STOP_GRACE", 0.0)
        assert agent.beat(run) == Command("stop", run)
    _post(client, run, complete=True, exitcode=255)
    assert trials(client, sweep)[0]["state"] == "stopped"
    assert _state(tracker, run) == "killed"


def test_an_agent_that_dies_and_a_run_that_lives(client: Client, tracker: Tracker) -> None:
    sweep = create(client)
    agent = Stock(client, tracker, sweep["key"])
    first = agent.beat()
    assert first is not None

    def expire(seconds: float) -> None:
        tracker._database.write(
            lambda connection: leases.lose_silent(connection, time.time() + seconds)
        ).result()

    for _ in range(3):
        # The program outlived its agent: it still logs.
        expire(leases.LEASE_SECONDS * 0.9)
        _post(client, first.run_id)
    assert trials(client, sweep)[0]["state"] == "running"
    expire(1000)
    assert trials(client, sweep)[0]["state"] == "waiting"
    # Its last word came late, but nobody else had begun.
    _post(client, first.run_id, complete=True, exitcode=0)
    assert trials(client, sweep)[0]["state"] == "finished"


def test_an_agent_that_is_not_there(client: Client, tracker: Tracker) -> None:
    with pytest.raises(NoAgent):
        asyncio.run(heartbeat(tracker.sweeps, 99, [], tracker.started_at))


def test_a_run_that_dies_before_it_is_heard_of_has_failed(
    client: Client, tracker: Tracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program ends before `wandb.init`: not again and again, as if the agent had not got it."""
    sweep = create(client)
    agent = Stock(client, tracker, sweep["key"])
    first = agent.beat()
    assert first is not None
    monkeypatch.setattr(agents, "_NEXT_POLL", (0.0, 12.0))  # As if five seconds had passed.
    # The answer may have been lost, and asked for again: once, it is given the benefit of doubt.
    assert agent.beat() == first
    second = agent.beat()
    assert second is not None
    assert second.run_id != first.run_id
    assert [trials(client, sweep)[0][key] for key in ("state", "cause")] == ["failed", "program"]
    assert _state(tracker, first.run_id) == "failed"


def test_an_answer_that_died_with_the_server_is_given_again(
    client: Client, tracker: Tracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = create(client)
    agent = Stock(client, tracker, sweep["key"])
    first = agent.beat()
    monkeypatch.setattr(agents, "_NEXT_POLL", (0.0, 12.0))
    tracker.started_at = time.time()  # It came back just now.
    assert agent.beat() == first


def test_agents_with_nothing_to_do_hear_of_a_change_at_once(
    client: Client, tracker: Tracker
) -> None:
    sweep = create(client)
    set_state(client, sweep, "paused")
    agent = Stock(client, tracker, sweep["key"])
    assert [agent.beat(), agent.beat()] == [None, None]
    assert agent.key in tracker.sweeps.quiet_periods
    set_state(client, sweep, "running")
    first = agent.beat()
    assert first is not None
    run = first.run_id or ""
    assert [agent.beat(run), agent.beat(run), agent.beat(run)] == [None] * 3
    set_state(client, sweep, "canceled")
    assert agent.beat(run) == Command("stop", run)
