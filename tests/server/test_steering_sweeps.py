"""Sweeps that somebody steers: paused, stopped, cancelled, capped, or one of their trials."""

from __future__ import annotations

from runyard.server.tracker import Tracker
from tests.server.asgi import Client
from tests.server.sweeping import GRID, Agent, create, finish_all, log, set_state, show


def test_pause_and_resume(client: Client) -> None:
    sweep = create(client)
    agent = Agent(client, sweep["key"])
    held = agent.claim()
    assert set_state(client, sweep, "paused").json()["state"] == "paused"
    assert agent.claim() == {"do": "wait", "why": "the sweep is paused"}
    assert agent.renew(held) == []
    assert agent.end(held)["state"] == "finished"
    assert set_state(client, sweep, "running").json()["state"] == "running"
    assert agent.claim()["trial"]["number"] == 2


def test_stop_lets_trials_end_and_hands_out_no_more(client: Client) -> None:
    sweep = create(client)
    agent = Agent(client, sweep["key"])
    held = agent.claim()
    set_state(client, sweep, "finished")
    assert agent.claim()["do"] == "exit"
    assert agent.renew(held) == []
    assert agent.end(held)["state"] == "finished"
    assert set_state(client, sweep, "paused").status == 409
    # Taken up again, it goes on where it was.
    set_state(client, sweep, "running")
    assert [one["trial"]["number"] for one in finish_all(agent)] == [2, 3, 4, 5, 6]


def test_cancel_ends_trials_and_nothing_is_forgotten_when_it_is_taken_up(
    client: Client, tracker: Tracker
) -> None:
    sweep = create(client)
    agent, gone = Agent(client, sweep["key"]), Agent(client, sweep["key"])
    held = agent.claim()
    agent.end(gone.claim(), cause="preempted", exit_code=1)
    set_state(client, sweep, "canceled")
    assert [stop["why"] for stop in agent.renew(held)] == ["canceled"]
    assert agent.end(held, -15)["state"] == "canceled"
    assert client.get("/api/run", name=held["trial"]["id"]).json()["state"] == "killed"
    assert show(client, sweep)["counts"]["canceled"] == 2
    assert set_state(client, sweep, "sunny").status == 409
    set_state(client, sweep, "running")
    assert sorted(one["trial"]["number"] for one in finish_all(agent)) == [1, 2, 3, 4, 5, 6]


def test_the_cap_counts_trials_and_can_be_changed(client: Client) -> None:
    sweep = create(client, {**GRID, "run_cap": 2})
    agent = Agent(client, sweep["key"])
    held = agent.claim()
    agent.end(held, cause="time", exit_code=-15)
    assert len(finish_all(agent)) == 2
    assert show(client, sweep)["state"] == "finished"
    raised = client.post(f"/api/sweeps/{sweep['key']}/cap", {"run_cap": 3}).json()
    assert (raised["state"], raised["expected"]) == ("running", 3)
    assert len(finish_all(agent)) == 1
    free = client.post(f"/api/sweeps/{sweep['key']}/cap", {"run_cap": None}).json()
    assert (free["state"], free["expected"]) == ("running", 6)
    assert client.post(f"/api/sweeps/{sweep['key']}/cap", {"run_cap": 0}).status == 400


def test_retrying_what_has_not_failed_is_refused(client: Client) -> None:
    sweep = create(client)
    agent = Agent(client, sweep["key"])
    agent.end(agent.claim())
    answer = client.post(f"/api/sweeps/{sweep['key']}/retry", {"trials": [1]})
    assert answer.status == 409
    assert "trial 1 has not failed" in answer.json()["error"]


def test_a_user_stops_one_trial(client: Client) -> None:
    sweep = create(client)
    agent = Agent(client, sweep["key"])
    held = agent.claim()
    client.post(f"/api/runs/{held['run']['key']}/stop", {})
    # No client is there to hear it by its stream: the agent is told.
    assert [stop["why"] for stop in agent.renew(held)] == ["stopped"]
    assert agent.end(held, -15)["state"] == "stopped"
    assert show(client, sweep)["state"] == "running"


def test_a_client_is_left_time_to_stop_by_itself(client: Client) -> None:
    sweep = create(client)
    agent = Agent(client, sweep["key"])
    held = agent.claim()
    log(client, held, 1.0)
    client.post(f"/api/runs/{held['run']['key']}/stop", {})
    assert agent.renew(held) == []
    assert log(client, held, 0.5, start=1)["stopped"] is True


def test_a_trial_whose_run_is_deleted(client: Client) -> None:
    sweep = create(client, {**GRID, "run_cap": 6})
    agent = Agent(client, sweep["key"])
    first, second = agent.claim(), agent.claim()
    agent.end(first)
    for held in (first, second):
        assert client.request("DELETE", f"/api/runs/{held['run']['key']}").status == 200
    assert [stop["why"] for stop in agent.renew(second)] == ["lost"]
    assert agent.end(second, -9)["cause"] == "deleted"
    done = finish_all(agent)
    points = [(one["args"]["lr"], one["args"]["size"]) for one in done]
    assert sorted(points) == sorted((lr, size) for lr in (0.1, 0.01) for size in (16, 32, 64))
    over = show(client, sweep)
    assert (over["state"], over["counts"]["finished"], over["counts"]["canceled"]) == (
        "finished", 6, 2,
    )  # fmt: skip


def test_only_a_sweep_that_nobody_has_worked_on_is_deleted(client: Client) -> None:
    unused, used = create(client), create(client)
    Agent(client, used["key"])
    refused = client.request("DELETE", f"/api/sweeps/{used['key']}")
    assert (refused.status, "can be canceled" in refused.text) == (409, True)
    assert show(client, used)["state"] == "running"
    gone = client.request("DELETE", f"/api/sweeps/{unused['key']}")
    assert gone.json() == {"deleted": unused["id"]}
    assert client.get(f"/api/sweeps/{unused['key']}").status == 404
    assert [sweep["id"] for sweep in client.get("/api/sweeps").json()] == [used["id"]]
    # No later sweep gets its key: a job that comes late would work for that one.
    assert create(client)["key"] > used["key"]
