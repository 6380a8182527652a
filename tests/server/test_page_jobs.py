"""Cancelling a job from the page: its agents begin nothing more, and commands hear of it. Retrying:
what failed in it waits again."""

from __future__ import annotations

import time
from typing import Any

from tests.server import sweeping
from tests.server.asgi import Client
from tests.server.persons import Person, make_team


def a_job(client: Client, **more: Any) -> Any:
    answer = client.post("/api/jobs", {"job_id": "4021", "kind": "agents", **more})
    assert answer.status == 200, answer.text
    return answer.json()


def agent_in(client: Client, sweep: int, job: str) -> int:
    given = {"token": job, "host": "node1", "pid": 7, "slots": 1, "job": job}
    agent: int = client.post(f"/api/sweeps/{sweep}/agents", given).json()["agent"]
    return agent


def claim(client: Client, agent: int, token: str) -> Any:
    return client.post(f"/api/agents/{agent}/claim", {"token": token}).json()


def test_agents_in_an_unwanted_job_are_given_nothing_more(client: Client) -> None:
    sweep = sweeping.create(client)
    job = a_job(client, sweep=sweep["key"])
    inside, outside = (agent_in(client, sweep["key"], name) for name in ("4021_3", "4022_0"))
    assert claim(client, inside, "first")["do"] == "run"
    wished = client.post(f"/api/jobs/{job['key']}/wish", {"wish": "cancel"})
    assert wished.json() == {"wish": "cancel"}
    told = claim(client, inside, "second")
    assert (told["do"], told["why"]) == ("exit", "its job is to be cancelled")
    assert claim(client, outside, "third")["do"] == "run"
    assert client.get(f"/api/jobs/{job['key']}").json()["wish"] == "cancel"
    client.post(f"/api/jobs/{job['key']}/wish", {"wish": None})
    assert claim(client, inside, "fourth")["do"] == "run"


def test_a_wish_is_for_ones_own_jobs_that_are_not_over(client: Client, bob: Person) -> None:
    job = a_job(client)
    assert bob.post(f"/api/jobs/{job['key']}/wish", {"wish": "cancel"}).status == 404
    assert client.post(f"/api/jobs/{job['key']}/wish", {"wish": "explode"}).status == 400
    news = {"key": job["key"], "polled_at": 5, "states": {"COMPLETED": 1}, "ended_at": 4}
    client.post("/api/jobs/news", {"news": [news]})
    assert client.post(f"/api/jobs/{job['key']}/wish", {"wish": "cancel"}).status == 409


def test_a_page_of_jobs_hears_of_them(client: Client) -> None:
    begin = client.get("/api/live?jobs=1").json()["revision"]
    job = a_job(client)
    told = client.get(f"/api/live?jobs=1&since={begin}").json()
    assert told["jobs"] is True
    client.post(f"/api/jobs/{job['key']}/wish", {"wish": "cancel"})
    assert client.get(f"/api/live?jobs=1&since={told['revision']}").json()["jobs"] is True


def test_what_failed_in_a_job_waits_again(client: Client, bob: Person) -> None:
    sweep = sweeping.create(client)
    job, other = a_job(client, sweep=sweep["key"]), a_job(client, sweep=sweep["key"], job_id="402")
    for name, code in (("4021_1", 1), ("4021_2", 0), ("402", 1)):
        agent = agent_in(client, sweep["key"], name)
        held = claim(client, agent, name)
        told = {"trial": held["trial"]["number"], "attempt": held["attempt"]}
        ended = client.post(
            f"/api/agents/{agent}/ends", {**told, "exit_code": code, "ended_at": time.time()}
        )
        assert ended.status == 200, ended.text
    failed = {one["job_id"]: one["failed"] for one in client.get("/api/jobs").json()}
    assert failed == {"4021": 1, "402": 1}
    assert bob.post(f"/api/jobs/{job['key']}/retry", {}).status == 404
    done = client.post(f"/api/jobs/{job['key']}/retry", {}).json()
    assert done == {"retried": 1, "sweep": sweep["id"], "agents": 3}
    states = {one["job"]: one["state"] for one in sweeping.trials(client, sweep)}
    assert states == {"4021_1": "waiting", "4021_2": "finished", "402": "failed"}
    again = client.post(f"/api/jobs/{job['key']}/retry", {})
    assert (again.status, again.json()["error"]) == (409, "no trial of job 4021 has failed")
    assert client.get(f"/api/jobs/{other['key']}").json()["failed"] == 1
    alone = a_job(client, job_id="7", kind="shell")
    assert "ran no trials" in client.post(f"/api/jobs/{alone['key']}/retry", {}).text


def test_a_number_that_is_not_ones_own_ends_and_shows_nobodys_agents(
    client: Client, bob: Person, eve: Person
) -> None:
    """Eve records a job with the number of bob's: alone, and for a sweep of their team."""
    make_team(bob, "lab", eve)
    new = {"config": sweeping.GRID, "project": "birds", "entity": "lab"}
    sweep = bob.post("/api/sweeps", new).json()["key"]
    given = {"token": "4021", "host": "node1", "pid": 7, "slots": 1, "job": "4021"}
    agent = bob.post(f"/api/sweeps/{sweep}/agents", given).json()["agent"]
    for more in ({}, {"sweep": sweep}):
        record = {"job_id": "4021", "kind": "agents", "submitted_at": 1.0 + len(more), **more}
        job = eve.post("/api/jobs", record).json()
        assert eve.get(f"/api/jobs/{job['key']}").json()["agents"] == []
        assert eve.post(f"/api/jobs/{job['key']}/wish", {"wish": "cancel"}).status == 200
    assert bob.post(f"/api/agents/{agent}/claim", {"token": "one"}).json()["do"] == "run"
