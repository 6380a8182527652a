"""The API's description is true: every route is in it, and nothing else."""

from __future__ import annotations

import re

import jsonschema
import pytest
from starlette.routing import Route

from runyard.server.api.catalogue import CATALOGUE
from runyard.server.api.openapi import document, shape
from runyard.server.app import create_app
from runyard.server.tracker import Tracker
from tests.server import sweeping
from tests.server.asgi import KEY_ID, Client
from tests.server.conftest import Upsert
from tests.server.test_charts import keys_of, log


def test_every_route_is_described_and_everything_described_is_there(tracker: Tracker) -> None:
    there = {
        (method, re.sub(r":\w+}", "}", route.path))
        for route in create_app(tracker, stop=lambda: None).routes
        if isinstance(route, Route) and route.path.startswith("/api/")
        for method in (route.methods or set()) - {"HEAD"}
        if not route.path.endswith("{rest:path}")
    }
    told = {(entry.method, entry.path) for some in CATALOGUE.values() for entry in some}
    assert told == there


def test_the_description_can_be_read_by_tools(client: Client) -> None:
    found = client.get("/api/openapi.json").json()
    assert found["openapi"].startswith("3.1")
    names = [one["operationId"] for path in found["paths"].values() for one in path.values()]
    assert len(names) == len(set(names))
    for path, operations in found["paths"].items():
        for one in operations.values():
            given = {each["name"] for each in one["parameters"] if each["in"] == "path"}
            assert given == set(re.findall(r"{(\w+)}", path))
    with pytest.raises(ValueError, match="cannot be read"):
        shape("no shape at all")


def test_answers_are_as_described(client: Client, upsert: Upsert) -> None:
    """What reads without effect is asked, and its answer held against the schema."""
    upsert(name="run1", config='{"lr": {"value": 0.1}}', summaryMetrics='{"loss": 1}')
    log(client, "run1", [{"_step": 0, "loss": 1.0}])
    sweep = sweeping.create(client)
    agent = sweeping.Agent(client, sweep["key"])
    agent.end(agent.claim())
    client.post(f"/api/sweeps/{sweep['key']}/estimate", {"kind": "train.py", "estimate": {}})
    report = client.post("/api/projects/ada/birds/reports", {"title": "a"}).json()
    job = client.post("/api/jobs", {"job_id": "12", "kind": "agents", "sweep": sweep["key"]})
    places = {
        "entity": "ada",
        "project": "birds",
        "id": report["id"],
        "stream": "history",
        "name": "run1",
    }
    described = document()
    checked = 0
    for path, operations in described["paths"].items():
        reading = operations.get("get")
        if reading is None or "/artifacts/" in path:
            continue
        key = sweep["key"] if "sweeps" in path else keys_of(client)["run1"]
        key = job.json()["key"] if "/jobs/" in path else key
        url = path.format(**places, key=key)
        words = {
            "/api/run": {"name": "run1"},
            "/api/sweep": {"name": sweep["id"]},
            "/api/job": {"name": "12"},
        }
        if url == "/api/proof":
            url += f"?key={KEY_ID}&nonce=n"
        answer = client.get(url, **words.get(url, {}))
        assert answer.status == 200, (url, answer.text)
        content = reading["responses"]["200"]["content"]
        if "application/json" in content and path != "/api/openapi.json":
            jsonschema.validate(answer.json(), content["application/json"]["schema"])
            checked += 1
    assert checked > 20
