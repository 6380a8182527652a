"""Reports: kept, changed, listed, and nobody else's."""

from __future__ import annotations

import json
from typing import Any

from tests.server.asgi import Answer, Client
from tests.server.conftest import Upsert
from tests.server.persons import Person

REPORTS = "/api/projects/ada/birds/reports"


def put(client: Client, report: Any, **content: Any) -> Answer:
    return client.request("PUT", f"/api/reports/{report['id']}", [json.dumps(content).encode()])


def test_a_view_is_kept_with_its_notes(client: Client, upsert: Upsert) -> None:
    upsert(name="run1")
    view = {"selection": [1, 2], "charts": [{"metric": "loss"}]}
    made = client.post(REPORTS, {"title": "What won", "notes": "# Yes\n\nit did", "view": view})
    assert made.status == 200, made.text
    report = made.json()
    shown = client.get(f"/api/reports/{report['id']}").json()
    assert (shown["title"], shown["notes"], shown["view"]) == ("What won", "# Yes\n\nit did", view)
    assert (shown["entity"], shown["project"], shown["user"]) == ("ada", "birds", "ada")
    (listed,) = client.get(REPORTS).json()
    assert listed["id"] == report["id"]
    assert "view" not in listed


def test_who_saves_over_somebody_elses_change_is_told(client: Client, upsert: Upsert) -> None:
    upsert(name="run1")
    report = client.post(REPORTS, {"title": "a"}).json()
    assert put(client, report, title="b", revision=report["revision"]).status == 200
    late = put(client, report, notes="mine", revision=report["revision"])
    assert late.status == 409
    assert "reload" in late.json()["error"]
    assert client.get(f"/api/reports/{report['id']}").json()["title"] == "b"


def test_a_report_is_deleted_for_good(client: Client, upsert: Upsert) -> None:
    upsert(name="run1")
    report = client.post(REPORTS, {"title": "a"}).json()
    assert client.request("DELETE", f"/api/reports/{report['id']}").status == 200
    assert client.get(f"/api/reports/{report['id']}").status == 404
    assert client.get(REPORTS).json() == []


def test_others_neither_see_nor_change_it(client: Client, upsert: Upsert, bob: Person) -> None:
    upsert(name="run1")
    report = client.post(REPORTS, {"title": "a"}).json()
    assert bob.get(f"/api/reports/{report['id']}").status == 404
    assert bob.delete(f"/api/reports/{report['id']}").status == 404
    assert bob.post(REPORTS, {"title": "mine"}).status == 404


def test_what_cannot_be_a_report(client: Client, upsert: Upsert) -> None:
    upsert(name="run1")
    for content in ({}, {"title": ""}, {"title": 3}, {"title": "a", "view": []}):
        assert client.post(REPORTS, content).status == 400, content
    assert client.post(REPORTS, {"title": "a" * 301}).status == 413
