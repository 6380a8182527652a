"""Slurm's jobs over the API: recorded, found, and what Slurm says of them."""

from __future__ import annotations

from typing import Any

import pytest

from runyard.server.jobs import jobs
from runyard.server.jobs.jobs import Sight
from tests.server.asgi import Answer, Client
from tests.server.memory import Question, empty_store, full_scans
from tests.server.persons import Person
from tests.server.sweeping import create, trials


def _record(who: Client | Person, job_id: str = "4021", **more: Any) -> Any:
    new = {
        "cluster": "narval",
        "job_id": job_id,
        "kind": "agents",
        "name": "first",
        "submitted_at": 100.0,
        **more,
    }
    answer = who.post("/api/jobs", new)
    assert answer.status == 200, answer.text
    return answer.json()


def _tell(who: Client | Person, key: int, **news: Any) -> Answer:
    told = {"key": key, "polled_at": 200.0, "states": {"RUNNING": 1}, **news}
    return who.post("/api/jobs/news", {"news": [told]})


def _ids(answer: Answer) -> list[str]:
    return [job["job_id"] for job in answer.json()]


def test_a_job_is_recorded_once_however_often_it_is_told(client: Client) -> None:
    sweep = create(client, name="grid")
    job = _record(
        client, sweep=sweep["key"], array="0-29%5", tasks=30, folder="/s/jobs/a b",
        log_pattern="/s/jobs/a b/logs/%A_%a.log", asked={"memory": 4096}, snapshot="9f",
    )  # fmt: skip
    again = _record(client, sweep=sweep["key"])
    assert again == job
    assert (job["sweep_id"], job["sweep_name"], job["project"]) == (sweep["id"], "grid", "birds")
    assert (job["tasks"], job["array"], job["asked"]) == (30, "0-29%5", {"memory": 4096})
    assert (job["states"], job["polled_at"], job["ended_at"]) == ({}, None, None)
    assert client.get("/api/jobs").json() == [job]


def test_script_and_environment_are_kept_and_told_to_the_owner_alone(
    client: Client, bob: Person
) -> None:
    sweep = create(client, entity="birders")
    environment = {"kind": "venv", "modules": ["python/3.11"]}
    job = _record(
        client, sweep=sweep["key"], script="#!/bin/bash\nsrun x\n", environment=environment
    )
    assert "script" not in job, "a list of jobs would be long"
    told = client.get(f"/api/jobs/{job['key']}").json()
    assert (told["script"], told["environment"]) == ("#!/bin/bash\nsrun x\n", environment)
    assert client.get("/api/job?name=4021").json()["script"] == told["script"]
    client.post("/api/teams", {"name": "birders"})
    assert client.request("PUT", "/api/teams/birders/members/bob").status == 200
    seen = bob.get(f"/api/jobs/{job['key']}").json()
    assert (seen["job_id"], seen["script"], seen["environment"]) == ("4021", None, {})


def test_the_newest_come_first_and_those_of_a_sweep_alone(client: Client) -> None:
    sweep = create(client)
    _record(client, "1", submitted_at=1.0)
    _record(client, "2", submitted_at=2.0, sweep=sweep["key"])
    over = _record(client, "3", submitted_at=3.0)
    _tell(client, over["key"], states={"COMPLETED": 1}, ended_at=150.0)
    assert _ids(client.get("/api/jobs")) == ["3", "2", "1"]
    assert _ids(client.get("/api/jobs", sweep=sweep["key"])) == ["2"]
    assert _ids(client.get("/api/jobs", open=1)) == ["2", "1"]
    assert _ids(client.get("/api/jobs", limit=1)) == ["3"]


@pytest.mark.parametrize("words", ["4021", "4021_7", "4021.batch", "narval/4021", "first", "irs"])
def test_a_job_is_found_by_its_number_its_task_or_its_name(client: Client, words: str) -> None:
    job = _record(client)
    found = client.get("/api/job", name=words).json()
    assert found["key"] == job["key"]
    assert found == {**job, "agents": [], "script": None, "environment": {}}
    assert client.get(f"/api/jobs/{job['key']}").json() == found


@pytest.mark.parametrize(
    "words",
    ["402", "40211", "", "fir/4021", "nothing", "x" * 5000, "4021'", "4021_", "4021_x", "٣"],
)
def test_a_job_that_is_not_there(client: Client, words: str) -> None:
    _record(client)
    assert client.get("/api/job", name=words).status == 404


def test_a_number_is_never_a_part_of_a_name(client: Client) -> None:
    _record(client, name="lr-0.4022")
    assert client.get("/api/job", name="4022").status == 404


def test_words_that_mean_two_jobs_are_told(client: Client) -> None:
    _record(client, "7", name="tune a")
    _record(client, "8", name="tune b")
    answer = client.get("/api/job", name="tune")
    assert answer.status == 404
    assert "narval/7 tune a" in answer.json()["error"]
    assert "narval/8 tune b" in answer.json()["error"]


def test_a_number_of_two_clusters_is_told_and_one_given_out_again_is_the_newer(
    client: Client,
) -> None:
    _record(client, "7", submitted_at=1.0)
    newer = _record(client, "7", submitted_at=2.0)
    assert client.get("/api/job", name="7").json()["key"] == newer["key"]
    fir = _record(client, "7", cluster="fir")
    assert "more than one" in client.get("/api/job", name="7").json()["error"]
    assert client.get("/api/job", name="fir/7").json()["key"] == fir["key"]


def test_the_newest_words_of_slurm_hold(client: Client) -> None:
    key = _record(client, tasks=3)["key"]
    _tell(client, key, states={"PENDING": 3}, reason="Priority", starts_at=900.0)
    waiting = client.get(f"/api/jobs/{key}").json()
    assert (waiting["states"], waiting["reason"]) == ({"PENDING": 3}, "Priority")
    assert (waiting["starts_at"], waiting["polled_at"]) == (900.0, 200.0)

    _tell(client, key, polled_at=300.0, states={"RUNNING": 3}, started_at=250.0)
    running = client.get(f"/api/jobs/{key}").json()
    assert (running["reason"], running["starts_at"], running["started_at"]) == (None, None, 250.0)

    answer = _tell(client, key, polled_at=200.0, states={"PENDING": 3})
    assert answer.json() == {"changed": []}
    assert client.get(f"/api/jobs/{key}").json() == running

    over = {"polled_at": 400.0, "states": {"COMPLETED": 2, "FAILED": 1}, "ended_at": 390.0}
    _tell(client, key, **over, used={"seconds": 140})
    _tell(client, key, **over, used={"memory_peak": 5})
    ended = client.get(f"/api/jobs/{key}").json()
    assert (ended["ended_at"], ended["started_at"]) == (390.0, 250.0)
    assert ended["used"] == {"seconds": 140, "memory_peak": 5}


def test_many_are_told_at_once(client: Client) -> None:
    keys = [_record(client, str(number))["key"] for number in range(1, 4)]
    told = [{"key": key, "polled_at": 5.0, "states": {"RUNNING": 1}} for key in (*keys, 999)]
    assert client.post("/api/jobs/news", {"news": told}).json() == {"changed": keys}


@pytest.mark.parametrize(
    "wrong",
    [
        {"job_id": "12; rm"},
        {"job_id": ""},
        {"job_id": 12},
        {"kind": "holiday"},
        {"asked": [1]},
        {"name": 5},
        {"submitted_at": "now"},
        {"submitted_at": 1e300},
    ],
)
def test_a_job_that_makes_no_sense_is_refused(client: Client, wrong: dict[str, Any]) -> None:
    right = {"cluster": "c", "job_id": "1", "kind": "agents", "name": "n", "submitted_at": 1.0}
    assert client.post("/api/jobs", {**right, **wrong}).status == 400
    assert client.get("/api/jobs").json() == []


@pytest.mark.parametrize("wrong", [{}, {"news": {}}, {"news": [1]}, {"news": [{"key": 1}]}])
def test_news_that_make_no_sense_are_refused(client: Client, wrong: dict[str, Any]) -> None:
    assert client.post("/api/jobs/news", wrong).status == 400


def test_an_agent_says_which_job_it_is_in(client: Client) -> None:
    sweep = create(client)
    job = _record(client, "50", sweep=sweep["key"], array="0-1", tasks=2)
    _record(client, "5", sweep=sweep["key"])
    begun = [
        client.post(
            f"/api/sweeps/{sweep['key']}/agents",
            {"token": task, "host": "login1", "pid": 1, "slots": 2, "job": task, "node": "n3"},
        ).json()["agent"]
        for task in ("50_0", "50_1")
    ]
    held = client.post(f"/api/agents/{begun[1]}/claim", {"token": "t"}).json()
    assert held["do"] == "run"
    detail = client.get(f"/api/jobs/{job['key']}").json()
    assert [(one["key"], one["job"], one["running"]) for one in detail["agents"]] == [
        (begun[0], "50_0", 0),
        (begun[1], "50_1", 1),
    ]
    assert detail["agents"][0]["node"] == "n3"
    assert client.get("/api/job", name="5").json()["agents"] == []
    shown = client.get(f"/api/sweeps/{sweep['key']}").json()
    assert [agent["job"] for agent in shown["agents"]] == ["50_0", "50_1"]
    [trial] = trials(client, sweep)
    assert (trial["job"], trial["node"]) == ("50_1", "n3")


def test_jobs_are_seen_by_whom_they_concern(client: Client, ada: Person, bob: Person) -> None:
    mine = _record(ada, "1")
    his = _record(bob, "1")
    assert [job["user"] for job in bob.get("/api/jobs").json()] == ["bob"]
    assert {job["user"] for job in ada.get("/api/jobs").json()} == {"ada", "bob"}
    assert bob.get(f"/api/jobs/{mine['key']}").status == 404
    assert bob.get("/api/job", name="1").json()["key"] == his["key"]
    assert _tell(bob, mine["key"]).json() == {"changed": []}
    assert _tell(ada, his["key"]).json() == {"changed": [his["key"]]}
    sweep = create(client)
    refused = bob.post("/api/jobs", {**his, "sweep": sweep["key"], "job_id": "2"})
    assert refused.status == 404
    team = ada.post("/api/teams", {"name": "owls", "members": ["bob"]})
    assert team.status == 200
    shared = create(client, entity="owls")
    _record(ada, "9", sweep=shared["key"])
    assert bob.get("/api/job", name="9").status == 200


@pytest.mark.parametrize(
    "question",
    [
        pytest.param(lambda c: jobs.newest(c, Sight(1), open_only=True, limit=9), id="open"),
        pytest.param(lambda c: jobs.newest(c, Sight(1), sweep=1), id="of a sweep"),
        pytest.param(lambda c: jobs.by_words(c, "12", Sight(1)), id="by number"),
    ],
)
def test_no_table_is_scanned(question: Question) -> None:
    connection = empty_store()
    assert full_scans(connection, question) == []
    connection.close()


def test_what_a_trial_uses_is_listed_with_it(client: Client) -> None:
    from tests.server.sweeping import Agent

    sweep = create(client)
    agent = Agent(client, sweep["key"])
    held = agent.claim()
    told = {"trial": held["trial"]["number"], "attempt": held["attempt"]}
    agent.say("renew", running=[{**told, "usage": {"memory_peak": 5, "cpu_seconds": 1.5}}])
    [trial] = trials(client, sweep, state="running")
    assert trial["usage"] == {"memory_peak": 5, "cpu_seconds": 1.5}
    agent.end(held)
    assert [one["number"] for one in trials(client, sweep, last=1)] == [1]
