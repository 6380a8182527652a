"""Cancelling a job from the page: its agents begin nothing more, and commands hear of it."""

from __future__ import annotations

from typing import Any

from tests.server import sweeping
from tests.server.asgi import Client
from tests.server.persons import Person


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
