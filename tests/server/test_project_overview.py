"""The list of projects: what is remembered of each is what a fresh look would find."""

from __future__ import annotations

import json
import random
import time
from typing import Any

import pytest

from runyard.server.api.page_api import page_projects
from runyard.server.history.reading import project_overview
from runyard.server.history.reading.project_overview import ProjectOverviews
from runyard.server.tracker import Tracker
from tests.server.asgi import Client
from tests.server.conftest import Upsert
from tests.server.test_public_api import rows

PROJECTS = ("birds", "fish", "newts")
CHANGES = ["new", "new", "log", "log", "end", "trash", "restore", "move", "hide", "delete"]
EXIT = {"files": {}, "complete": True, "exitcode": 0}


@pytest.mark.parametrize("seed", range(6))
def test_remembered_projects_are_what_a_fresh_look_finds(
    client: Client, tracker: Tracker, upsert: Upsert, seed: int
) -> None:
    chance = random.Random(seed)
    logged: dict[str, int] = {}
    for turn in range(60):
        listed = client.get("/api/runs").json()
        running = [run for run in listed if run["state"] == "running"]
        what = chance.choice(CHANGES)
        if what == "new" or not listed:
            upsert(name=f"run{turn}", project=chance.choice(PROJECTS))
        elif what in ("log", "end") and running:
            run = chance.choice(running)
            start = logged.get(run["id"], 0)
            logged[run["id"]] = start + 3
            history = {"offset": start, "content": rows(start, start + 3)}
            log = {"files": {"wandb-history.jsonl": history}}
            path = f"/files/{run['entity']}/{run['project']}/{run['id']}/file_stream"
            client.post(path, log if what == "log" else log | EXIT)
        elif what == "restore":
            client.post("/api/trash/restore", {"runs": [run["key"] for run in trashed(client)]})
        else:
            run = chance.choice(listed)
            path = f"/api/projects/{run['entity']}/{run['project']}"
            if what == "trash":
                client.post(f"{path}/trash", {"runs": [run["key"]]})
            elif what == "move":
                client.post(f"{path}/move", {"runs": [run["key"]], "to": chance.choice(PROJECTS)})
            elif what == "hide":
                defined = {"m": [{"1": "loss", "6": [3], "7": []}, {"1": "step", "6": [2]}]}
                config = {"_wandb": {"value": defined}, "turn": {"value": turn}}
                upsert(name=run["id"], project=run["project"], config=json.dumps(config))
            else:
                client.request("DELETE", f"/api/runs/{run['key']}")
        assert client.get("/api/projects").json()["projects"] == fresh(tracker)
    assert logged


def test_only_projects_that_changed_are_read_again(
    client: Client, upsert: Upsert, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, project in enumerate(PROJECTS):
        upsert(name=f"run{number}", project=project)
        client.post(f"/files/ada/{project}/run{number}/file_stream", EXIT)
    client.get("/api/projects")
    read: list[int] = []
    count = project_overview._count

    def note(db: Any, project: int) -> Any:
        read.append(project)
        return count(db, project)

    monkeypatch.setattr(project_overview, "_count", note)
    upsert(name="another", project="fish")
    found = {project["name"]: project for project in client.get("/api/projects").json()["projects"]}
    assert found["fish"]["runs"] == 2
    assert len(read) == 1
    # One that has a run at work is counted each time: a heartbeat is no change.
    upsert(name="run0", project="birds", notes="seen")
    client.get("/api/projects")
    assert len(read) == 3


def test_what_changes_while_a_list_is_read_is_in_the_next_one(
    client: Client, tracker: Tracker, upsert: Upsert, monkeypatch: pytest.MonkeyPatch
) -> None:
    upsert(name="run1", project="birds")
    client.post("/files/ada/birds/run1/file_stream", EXIT)
    read = ProjectOverviews.read

    def read_late(*args: Any) -> Any:
        monkeypatch.setattr(ProjectOverviews, "read", read)
        now = time.time()
        change = (
            "INSERT INTO runs (id, project, user, name, state, created_at) "
            "SELECT 'run2', project, user, 'run2', 'finished', ? FROM runs"
        )
        tracker._database.write(lambda db: db.execute(change, (now,)).rowcount).result()
        return read(*args)

    monkeypatch.setattr(ProjectOverviews, "read", read_late)
    assert client.get("/api/projects").json()["projects"][0]["runs"] == 1
    assert client.get("/api/projects").json()["projects"][0]["runs"] == 2


def trashed(client: Client) -> list[dict[str, Any]]:
    return list(client.get("/api/trash").json())


def fresh(tracker: Tracker) -> list[dict[str, Any]]:
    def look(db: Any) -> list[dict[str, Any]]:
        overviews = ProjectOverviews(tracker.changes)
        return page_projects._projects(db, None, overviews, tracker.changes.revision, time.time())

    found = tracker._database.read(look).result()
    return list(json.loads(json.dumps(found)))
