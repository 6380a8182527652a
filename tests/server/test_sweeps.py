"""Sweeps over the API: made, handed out, ended, steered."""

from __future__ import annotations

import time
from typing import Any

import pytest

from runyard.server.sweeps.ledger import leases
from runyard.server.tracker import Tracker
from tests.server.asgi import Client
from tests.server.sweeping import GRID, Agent, create, finish_all, log, show, trials


def _expire(tracker: Tracker, seconds: float = 1000.0) -> None:
    """As if nobody had been heard for so long."""
    tracker._database.write(
        lambda connection: leases.lose_silent(connection, time.time() + seconds)
    ).result()


def test_a_sweep_is_made_of_a_file(client: Client) -> None:
    text = "method: grid\nmetric: {name: loss}\nparameters: {lr: {values: [3e-3, 1E-5]}}\n"
    made = create(client, text, name="first", folder="/scratch/first")
    assert made["config"]["parameters"]["lr"]["values"] == [0.003, 1e-05]
    assert (made["name"], made["state"], made["expected"]) == ("first", "running", 2)
    assert (made["entity"], made["project"], made["method"]) == ("ada", "birds", "grid")
    assert made["counts"]["running"] == made["attempts"] == 0
    assert made["warnings"] == []
    assert client.get("/api/sweeps").json() == [show(client, made)]
    for words in (made["id"], "first", "fir", f"birds/{made['id'][:3]}", "ada/birds/first"):
        assert client.get("/api/sweep", name=words).json()["key"] == made["key"]
    assert client.get("/api/sweep", name="other").status == 404


def test_words_that_mean_two_sweeps(client: Client) -> None:
    for name in ("one grid", "two grid"):
        create(client, name=name)
    answer = client.get("/api/sweep", name="grid")
    assert answer.status == 404
    assert "more than one" in answer.json()["error"]


def test_a_bad_file_is_refused_with_every_problem(client: Client) -> None:
    bad = {"method": "grid", "parameters": {"lr": {"min": 1.0}, "2x": {"value": 1}}}
    answer = client.post("/api/sweeps", {"config": bad, "project": "birds"})
    assert answer.status == 400
    problems = answer.json()["problems"]
    assert ["parameters", "2x"] in [problem["path"] for problem in problems]
    assert all(problem["message"] and problem["mend"] for problem in problems)
    assert client.get("/api/sweeps").json() == []
    torn = client.post("/api/sweeps", {"config": "method: [grid", "project": "birds"})
    assert torn.status == 400
    assert client.post("/api/sweeps", {"config": 7, "project": "birds"}).status == 400


def test_a_grid_is_handed_out_once_each(client: Client) -> None:
    sweep = create(client, folder="/scratch/grid")
    agents = [Agent(client, sweep["key"]) for _ in range(3)]
    held = [agent.claim() for agent in agents for _ in range(2)]
    assert [one["do"] for one in held] == ["run"] * 6
    points = [(one["args"]["lr"], one["args"]["size"]) for one in held]
    assert points == [(lr, size) for lr in (0.1, 0.01) for size in (16, 32, 64)]
    first = held[0]
    assert first["attempt"] == 1
    assert first["sweep"] == sweep["id"]
    assert first["program"] == "train.py"
    run = client.get("/api/run", name=first["run"]["id"]).json()
    assert run["config"] == {"lr": 0.1, "size": 16}
    assert run["state"] == "running"
    assert first["run"]["name"] == first["trial"]["name"]
    assert first["run"]["folder"] == f"/scratch/grid/sweeps/{sweep['id']}/{first['trial']['name']}"
    assert len({one["trial"]["name"] for one in held}) == 6
    waiting = agents[0].claim()
    assert waiting["do"] == "wait"
    assert "may come back" in waiting["why"]
    for agent, one in zip([agent for agent in agents for _ in range(2)], held, strict=True):
        assert agent.end(one)["state"] == "finished"
    over = show(client, sweep)
    assert (over["state"], over["counts"]["finished"]) == ("finished", 6)
    assert over["ended_at"] is not None
    assert agents[0].claim() == {"do": "exit", "why": "the sweep is finished"}


def test_a_repeated_claim_is_the_same_claim(client: Client) -> None:
    sweep = create(client)
    agent = Agent(client, sweep["key"], token="a1")
    assert Agent(client, sweep["key"], token="a1").key == agent.key
    first, again = agent.claim("t1"), agent.claim("t1")
    assert first["trial"] == again["trial"]
    assert first["attempt"] == again["attempt"] == 1
    agent.end(first)
    # The answer to an old claim is old news: nothing new goes to who no longer waits for it.
    assert agent.claim("t1")["do"] == "wait"
    assert agent.claim("t2")["trial"]["number"] == 2
    assert show(client, sweep)["attempts"] == 2


def test_a_lost_lease_returns_the_trial_once_and_to_the_head(
    client: Client, tracker: Tracker
) -> None:
    sweep = create(client)
    lost, other = Agent(client, sweep["key"]), Agent(client, sweep["key"])
    held = lost.claim()
    _expire(tracker)
    (trial,) = trials(client, sweep, state="waiting")
    assert (trial["number"], trial["cause"]) == (held["trial"]["number"], "node")
    assert client.get("/api/run", name=held["trial"]["id"]).json()["state"] == "preempted"
    again = other.claim()
    assert again["trial"]["id"] == held["trial"]["id"]
    assert again["args"] == held["args"]
    assert again["attempt"] == 2
    # Who had it must let go, and its late end is no end of the new attempt.
    assert [stop["why"] for stop in lost.renew(held)] == ["lost"]
    assert lost.end(held, exit_code=1)["state"] == "running"
    assert other.end(again)["state"] == "finished"
    assert other.claim()["trial"]["number"] == 2


def test_who_comes_back_before_anybody_else_goes_on(client: Client, tracker: Tracker) -> None:
    sweep = create(client)
    agent = Agent(client, sweep["key"])
    held = agent.claim()
    _expire(tracker)
    assert agent.renew(held) == []
    assert [trial["state"] for trial in trials(client, sweep)] == ["running"]
    _expire(tracker)
    # It ended while nobody could be told.
    assert agent.end(held)["state"] == "finished"
    assert show(client, sweep)["counts"]["waiting"] == 0


def test_what_logs_is_alive(client: Client, tracker: Tracker) -> None:
    sweep = create(client)
    held = Agent(client, sweep["key"]).claim()
    _expire(tracker)
    log(client, held, 1.0)
    assert [trial["state"] for trial in trials(client, sweep)] == ["running"]


def test_time_in_which_the_server_was_down_does_not_count(client: Client, tracker: Tracker) -> None:
    sweep = create(client)
    Agent(client, sweep["key"]).claim()
    later = time.time() + 1000.0

    def look(connection: Any) -> set[int]:
        leases.extend_all(connection, later)
        return leases.lose_silent(connection, later)

    assert tracker._database.write(look).result() == set()


@pytest.mark.parametrize(
    ("cause", "exit_code", "state", "next_number"),
    [
        ("time", -15, "waiting", 1),
        ("preempted", -15, "waiting", 1),
        (None, 75, "waiting", 1),
        ("memory", -9, "waiting", 1),
        (None, -9, "waiting", 1),
        (None, 3, "failed", 2),
        (None, -11, "failed", 2),
        ("stopped", -15, "stopped", 2),
    ],
)
def test_what_follows_an_end(
    client: Client, cause: str | None, exit_code: int, state: str, next_number: int
) -> None:
    sweep = create(client)
    agent = Agent(client, sweep["key"])
    held = agent.claim()
    assert agent.end(held, exit_code, cause)["state"] == state
    # Told twice is told once.
    assert agent.end(held, exit_code, cause)["state"] == state
    assert agent.claim()["trial"]["number"] == next_number
    assert show(client, sweep)["attempts"] == 2


def test_the_first_trials_all_fail_and_the_sweep_says_why(client: Client) -> None:
    sweep = create(client, {**GRID, "runyard": {"stop_after_failures": 2}})
    agent = Agent(client, sweep["key"])
    for _ in range(2):
        held = agent.claim()
        run, attempt = held["run"]["key"], held["attempt"]
        said = b"Traceback (most recent call last):\nModuleNotFoundError: No module named 'tarch'\n"
        client.post(f"/api/runs/{run}/attempts/{attempt}/console?offset=0", said)
        agent.end(held, 1)
    failed = show(client, sweep)
    assert failed["state"] == "failed"
    assert "the first 2 trials all failed" in failed["cause"]
    assert "No module named 'tarch'" in failed["cause"]
    exit_ = agent.claim()
    assert exit_["do"] == "exit"
    assert "tarch" in exit_["why"]
    # Mended: what failed is run again, and the sweep goes on.
    again = client.post(f"/api/sweeps/{sweep['key']}/retry", {"trials": None}).json()
    assert (again["state"], again["counts"]["waiting"]) == ("running", 2)
    assert len(finish_all(agent)) == 6
    assert show(client, sweep)["state"] == "finished"


def test_one_success_is_enough_to_go_on(client: Client) -> None:
    sweep = create(client, {**GRID, "runyard": {"stop_after_failures": 2}})
    agent = Agent(client, sweep["key"])
    for number in range(6):
        agent.end(agent.claim(), 0 if number == 0 else 1)
    over = show(client, sweep)
    assert (over["state"], over["counts"]["failed"]) == ("finished", 5)


def test_failed_points_of_a_grid_again_at_the_end(client: Client) -> None:
    sweep = create(client, {**GRID, "runyard": {"retry_failed": True, "stop_after_failures": 0}})
    agent = Agent(client, sweep["key"])
    order = []
    while (held := agent.claim())["do"] == "run":
        order.append(held["trial"]["number"])
        agent.end(held, 1 if held["trial"]["number"] in (2, 5) else 0)
    assert order == [1, 2, 3, 4, 5, 6, 2, 5]
    over = show(client, sweep)
    assert (over["state"], over["counts"]["failed"]) == ("finished", 2)


def test_retries_of_the_program_come_after_what_was_cut_off(client: Client) -> None:
    sweep = create(client, {**GRID, "runyard": {"retries": {"program": 1}}})
    agent = Agent(client, sweep["key"])
    first, second = agent.claim(), agent.claim()
    assert agent.end(first, 1)["state"] == "waiting"
    agent.end(second, -15, "preempted")
    assert [agent.claim()["trial"]["number"] for _ in range(3)] == [2, 1, 3]


def test_random_trials_follow_from_the_seed(client: Client) -> None:
    config = {
        "method": "random",
        "parameters": {"lr": {"min": 0.0, "max": 1.0}, "opt": {"values": ["sgd", "adam"]}},
        "run_cap": 4,
    }
    drawn = []
    for seed in (5, 5, 6):
        sweep = create(client, config, seed=seed)
        drawn.append([one["args"] for one in finish_all(Agent(client, sweep["key"]))])
        assert show(client, sweep)["state"] == "finished"
    assert drawn[0] == drawn[1] != drawn[2]
    assert len({one["lr"] for one in drawn[0]}) == 4


def test_every_setting_with_every_seed(client: Client) -> None:
    sweep = create(client, {**GRID, "runyard": {"seeds": 2}, "run_cap": 5})
    assert sweep["expected"] == 5
    done = finish_all(Agent(client, sweep["key"]))
    assert [(one["args"]["size"], one["args"]["seed"]) for one in done] == [
        (16, 0), (16, 1), (32, 0), (32, 1), (64, 0),
    ]  # fmt: skip
    assert len({one["trial"]["name"] for one in done}) == 5


def test_the_best_trial_and_the_target(client: Client) -> None:
    config = {**GRID, "metric": {"name": "loss", "goal": "minimize", "target": 0.2}}
    sweep = create(client, config)
    agent = Agent(client, sweep["key"])
    for losses in ((3.0, 1.0, 2.0), (5.0, float("nan")), (0.9, 0.1)):
        held = agent.claim()
        log(client, held, *losses)
        agent.end(held)
    over = show(client, sweep)
    assert over["state"] == "finished"
    assert (over["best"]["number"], over["best"]["value"]) == (3, 0.1)
    assert [trial["value"] for trial in trials(client, sweep)] == [1.0, 5.0, 0.1]


def test_when_it_will_be_over(client: Client, tracker: Tracker) -> None:
    sweep = create(client)
    agent = Agent(client, sweep["key"])
    assert show(client, sweep)["eta_seconds"] is None
    held = agent.claim()

    def back(connection: Any) -> None:
        connection.execute("UPDATE trials SET began_at = began_at - 100")

    tracker._database.write(back).result()
    agent.end(held)
    agent.claim()
    # One at work, four to come, a hundred seconds each.
    assert show(client, sweep)["eta_seconds"] == pytest.approx(500, abs=5)


def test_prior_runs_count_as_tried(client: Client) -> None:
    before = create(client)
    agent = Agent(client, before["key"])
    ids = []
    for _ in range(2):
        held = agent.claim()
        ids.append(held["run"]["id"])
        agent.end(held)
    sweep = create(client, prior_runs=ids)
    assert sweep["expected"] == 4
    done = finish_all(Agent(client, sweep["key"]))
    assert [(one["args"]["lr"], one["args"]["size"]) for one in done] == [
        (0.1, 64), (0.01, 16), (0.01, 32), (0.01, 64),
    ]  # fmt: skip
    unknown = client.post(
        "/api/sweeps", {"config": GRID, "project": "birds", "prior_runs": ["nobody"]}
    )
    assert unknown.status == 400


def test_an_agent_that_leaves_gives_back_what_it_had(client: Client) -> None:
    sweep = create(client)
    agent = Agent(client, sweep["key"])
    held = agent.claim()
    agent.leave()
    assert show(client, sweep)["agents"] == []
    assert Agent(client, sweep["key"]).claim()["trial"]["id"] == held["trial"]["id"]


def test_sweeps_of_others_do_not_exist(client: Client) -> None:
    assert client.post("/api/users", {"name": "eve"}).status == 200
    key = client.post("/api/keys", {"user": "eve", "label": "laptop"}).json()["key"]
    sweep = create(client)
    agent = Agent(client, sweep["key"])
    held = agent.claim()
    assert client.get("/api/sweeps", key=key).json() == []
    assert client.get("/api/sweep", key=key, name=sweep["id"]).status == 404
    for path, content in (
        (f"sweeps/{sweep['key']}/state", {"state": "canceled"}),
        (f"sweeps/{sweep['key']}/cap", {"run_cap": 1}),
        (f"sweeps/{sweep['key']}/retry", {}),
        (f"sweeps/{sweep['key']}/agents", {"token": "x", "host": "h", "pid": 1, "slots": 1}),
        (f"agents/{agent.key}/claim", {"token": "x"}),
        (f"agents/{agent.key}/renew", {"running": []}),
        (f"agents/{agent.key}/leave", {}),
        (f"agents/{agent.key}/ends", {"trial": 1, "attempt": 1, "exit_code": 0, "ended_at": 1.0}),
    ):
        assert client.post(f"/api/{path}", content, key=key).status == 404, path
    stolen = {"config": GRID, "project": "birds", "entity": "ada"}
    assert client.post("/api/sweeps", stolen, key=key).status == 403
    assert agent.end(held)["state"] == "finished"


def test_a_random_search_over_lists_may_repeat_itself_up_to_its_count(client: Client) -> None:
    space = {"lr": {"values": [0.1, 0.01]}, "size": {"values": [16]}}
    sweep = create(client, {**GRID, "method": "random", "parameters": space, "run_cap": 7})
    done = finish_all(Agent(client, sweep["key"]))
    points = [(one["args"]["lr"], one["args"]["size"]) for one in done]
    assert len(points) == 7  # Of two that there are.
    assert set(points) <= {(0.1, 16), (0.01, 16)}
    assert len({one["run"]["id"] for one in done}) == 7
    assert show(client, sweep)["state"] == "finished"
