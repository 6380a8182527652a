"""The API's description is true: every route is in it, and nothing else."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping
from typing import Any

import jsonschema
from starlette.routing import Route

from runyard.server.api.openapi import document
from runyard.server.app import create_app
from runyard.server.http.routes import Endpoint
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
    described = document(create_app(tracker, stop=lambda: None).routes)["paths"]
    assert there == {(way.upper(), path) for path, ways in described.items() for way in ways}
    assert all(one["summary"] for path in described.values() for one in path.values())


def test_the_description_can_be_read_by_tools(client: Client) -> None:
    found = client.get("/api/openapi.json").json()
    assert found["openapi"].startswith("3.1")
    names = [one["operationId"] for path in found["paths"].values() for one in path.values()]
    assert len(names) == len(set(names))
    for path, operations in found["paths"].items():
        for one in operations.values():
            given = {each["name"] for each in one["parameters"] if each["in"] == "path"}
            assert given == set(re.findall(r"{(\w+)}", path))


def test_answers_are_as_described(client: Client, tracker: Tracker, upsert: Upsert) -> None:
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
    described = document(create_app(tracker, stop=lambda: None).routes)
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
            schema = content["application/json"]["schema"]
            jsonschema.validate(answer.json(), {**schema, "components": described["components"]})
            checked += 1
    assert checked > 20


def test_what_a_handler_reads_of_the_address_is_declared(tracker: Tracker) -> None:
    reads = re.compile(
        r"""(?:query(?:_params)?\.get(?:list)?\(|arguments\.number\(request, )"(\w+)\""""
    )
    names = {
        (endpoint.path, name, name in endpoint.query)
        for endpoint in create_app(tracker, stop=lambda: None).routes
        if isinstance(endpoint, Endpoint) and endpoint.tag
        for name in reads.findall(inspect.getsource(endpoint.endpoint))
    }
    assert len(names) > 20
    assert not sorted((path, name) for path, name, is_declared in names if not is_declared)


def test_fields_of_the_wrong_kind_are_refused_by_name(
    client: Client, tracker: Tracker, upsert: Upsert
) -> None:
    """Every field of every body that is described, on routes that find what they are about."""
    upsert(name="run1")
    sweep = sweeping.create(client)
    agent = sweeping.Agent(client, sweep["key"])
    job = client.post("/api/jobs", {"job_id": "12", "kind": "agents", "sweep": sweep["key"]}).json()
    report = client.post("/api/projects/ada/birds/reports", {"title": "a"}).json()
    places = {"entity": "ada", "project": "birds", "id": report["id"]}
    places |= {"agent": agent.key, "number": 1}
    described = document(create_app(tracker, stop=lambda: None).routes)
    components = described["components"]["schemas"]
    refused = 0
    for path, operations in described["paths"].items():
        key = sweep["key"] if "sweeps" in path else keys_of(client)["run1"]
        places["key"] = job["key"] if "/jobs/" in path else key
        for method, operation in operations.items():
            body = operation.get("requestBody")
            # Logging out works whatever is sent, and only browsers log in.
            if body is None or path.startswith("/api/log"):
                continue
            url = path.format(**places)
            schema = _found(body["content"]["application/json"]["schema"], components)
            good = {name: _good(schema["properties"][name]) for name in schema["required"]}
            for name, kind in schema["properties"].items():
                if not kind.keys() - {"default"}:  # Anything will do.
                    continue
                wrong: object = 3 if "object" in str(_found(kind, components)) else {"odd": []}
                answer = client.request(
                    method.upper(), url, [json.dumps({**good, name: wrong}).encode()]
                )
                assert answer.status == 400, (method, url, name, answer.text)
                assert name in answer.json()["error"], (method, url, name, answer.text)
                refused += 1
    assert refused > 80


def _found(schema: Mapping[str, Any], components: Mapping[str, Any]) -> Any:
    return components[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def _good(schema: Mapping[str, Any]) -> Any:
    kind = schema.get("type") or schema.get("anyOf", [{}])[0].get("type")
    return {"string": "a", "integer": 1, "number": 1.5, "boolean": True, "array": []}.get(kind, {})
