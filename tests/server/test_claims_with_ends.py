"""An attempt's end that brings the claim for the next trial."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pytest

from runyard.server.sweeps.ledger import claims
from runyard.server.sweeps.serving.claim_queues import MOST_WITH_ENDS
from runyard.server.tracker import Tracker
from tests.server.asgi import Client
from tests.server.sweeping import GRID, Agent, create, set_state, show, trials


def end_and_claim(agent: Agent, held: Mapping[str, Any], token: str, **room: Any) -> Any:
    answer = agent.say(
        "ends",
        trial=held["trial"]["number"],
        attempt=held["attempt"],
        exit_code=0,
        ended_at=time.time(),
        claim={"token": token, "wait": 20.0, **room},
    )
    assert answer.status == 200, answer.text
    return answer.json()


def test_the_next_trial_comes_with_the_end_of_the_last(client: Client) -> None:
    sweep = create(client)
    agent = Agent(client, sweep["key"])
    held = agent.claim()
    assert held["claims_with_end"]
    told = end_and_claim(agent, held, "second")
    assert told["trial"]["state"] == "finished"
    assert told["claim"]["trial"]["number"] == 2
    assert told["claim"]["command"] == held["command"]
    assert [trial["state"] for trial in trials(client, sweep)] == ["finished", "running"]


def test_both_are_on_disk_after_one_commit(client: Client) -> None:
    agent = Agent(client, create(client)["key"])
    held = agent.claim()

    def commits() -> int:
        count: int = client.get("/api/health").json()["writer"]["commit"]["count"]
        return count

    before = commits()
    assert end_and_claim(agent, held, "second")["claim"]["do"] == "run"
    assert commits() - before == 1


def test_said_again_it_is_the_same_trial(client: Client) -> None:
    sweep = create(client)
    agent = Agent(client, sweep["key"])
    held = agent.claim()
    first, again = (end_and_claim(agent, held, "second") for _ in range(2))
    assert first["claim"]["trial"] == again["claim"]["trial"]
    assert agent.claim("second")["trial"]["number"] == 2
    assert len(trials(client, sweep)) == 2


def test_where_nothing_is_left_the_agent_asks_again_and_hears_why(client: Client) -> None:
    sweep = create(client, {**GRID, "run_cap": 1})
    agent = Agent(client, sweep["key"])
    assert end_and_claim(agent, agent.claim(), "second")["claim"] is None
    assert agent.claim("second")["do"] == "exit"
    assert show(client, sweep)["state"] == "finished"


def test_nothing_is_handed_out_while_a_sweep_is_paused(client: Client) -> None:
    sweep = create(client)
    agent = Agent(client, sweep["key"])
    held = agent.claim()
    set_state(client, sweep, "paused")
    assert end_and_claim(agent, held, "second")["claim"] is None
    assert len(trials(client, sweep)) == 1


def test_a_job_without_room_for_a_trial_gets_none(client: Client) -> None:
    agent = Agent(client, create(client)["key"])
    held = agent.claim()
    time.sleep(0.2)
    told = end_and_claim(agent, held, "second", seconds_left=0.001, seconds_whole=5, has_begun=True)
    assert told["claim"] is None


def test_a_search_that_learns_claims_after_the_end(client: Client) -> None:
    space = {"x": {"min": 0.0, "max": 1.0}}
    sweep = create(client, {**GRID, "method": "bayes", "parameters": space, "run_cap": 3})
    agent = Agent(client, sweep["key"])
    held = agent.claim(wait=20)
    assert not held["claims_with_end"]
    assert end_and_claim(agent, held, "second")["claim"] is None


def test_a_trial_that_cannot_be_handed_out_does_not_undo_the_end(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = create(client)
    agent = Agent(client, sweep["key"])
    held = agent.claim()

    def fail(*_: Any) -> Any:
        raise KeyError("setting")

    with monkeypatch.context() as broken:
        broken.setattr(claims, "hand_out", fail)
        told = end_and_claim(agent, held, "second")
    assert (told["trial"]["state"], told["claim"]) == ("finished", None)
    assert agent.claim("second")["trial"]["number"] == 2


@pytest.mark.parametrize(
    "claim",
    [
        {"wait": 1},
        {"token": "second", "wait": "long"},
        {"token": "second", "wait": 1, "seconds_left": 5},
        {"token": 7, "wait": 1},
        {"token": "half \ud800", "wait": 1},
    ],
)
def test_a_claim_that_makes_no_sense_does_not_cost_the_end(client: Client, claim: Any) -> None:
    """An agent of another version may ask otherwise; a finished trial must not run again."""
    sweep = create(client)
    agent = Agent(client, sweep["key"])
    held = agent.claim()
    place = {"trial": held["trial"]["number"], "attempt": held["attempt"]}
    answer = agent.say("ends", **place, exit_code=0, ended_at=1.0, claim=claim)
    assert answer.status == 200
    assert trials(client, sweep)[0]["state"] == "finished"


def test_a_claim_that_is_repeated_has_its_trial_whatever_has_changed(client: Client) -> None:
    """The answer was lost, and meanwhile the job's room is used up."""
    sweep = create(client)
    agent = Agent(client, sweep["key"])
    held = agent.claim()
    time.sleep(0.2)
    assert end_and_claim(agent, held, "second")["claim"]["trial"]["number"] == 2
    room = {"seconds_left": 0.001, "seconds_whole": 5, "has_begun": True}
    assert agent.say("claim", token="third", wait=0, **room).json()["do"] == "exit"
    again = agent.say("claim", token="second", wait=0, **room).json()
    assert (again["do"], again["trial"]["number"]) == ("run", 2)


def test_many_ends_at_once_stand_in_the_line(client: Client, tracker: Tracker) -> None:
    """One by one, each would count the budget of the whole sweep anew."""
    sweep = create(client)
    queue = tracker.sweeps.queue(sweep["key"])
    agent = Agent(client, sweep["key"])
    held = agent.claim()
    queue.with_ends = MOST_WITH_ENDS
    assert end_and_claim(agent, held, "second")["claim"] is None
    queue.with_ends = 0
    assert agent.claim("second")["trial"]["number"] == 2
