"""Deleted runs: everything goes, the room comes back, and late words change nothing."""

from __future__ import annotations

import json
import secrets
import time
from pathlib import Path
from typing import Any

from runyard.home import Home
from runyard.server.store.store import give_back
from runyard.server.tracker import Tracker
from runyard.server.tracking import trash
from tests.server import sweeping
from tests.server.asgi import KEY, Client
from tests.server.conftest import Upsert
from tests.server.test_public_api import STREAM, rows, send, upload

DELETE = "mutation($id: ID!) { deleteRun(input: {id: $id}) { clientMutationId } }"
TABLES = ("runs", "batches", "segments", "series", "lines", "console", "attempts", "files")


def _counts(tracker: Tracker) -> dict[str, int]:
    def look(connection: Any) -> dict[str, int]:
        return {
            table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in TABLES
        }

    return tracker._database.read(look).result()


def _run_folders(home: Home) -> list[Path]:
    return [path for path in home.files.iterdir() if path.name.isdecimal()]


def test_everything_of_a_run_goes(
    client: Client, tracker: Tracker, home: Home, upsert: Upsert
) -> None:
    key = upsert(name="run1")["bucket"]["id"]
    upsert(name="run2")
    send(client, "run1", history=(0, rows(0, 1)), events=(0, ["{}"]), output=(0, ["a line"]))
    attempt = {"token": "t", "host": "node1", "pid": 1}
    assert client.post("/api/runs/1/attempts", attempt).status == 200
    assert client.post("/api/runs/1/attempts/1/console?offset=0", b"printed").status == 200
    upload(client, "a.txt", b"a")
    assert len(_run_folders(home)) == 1

    assert client.request("DELETE", "/api/runs/1?now=1").json() == {"deleted": "run1"}
    assert _counts(tracker) == {**dict.fromkeys(TABLES, 0), "runs": 1}
    assert _run_folders(home) == []
    # Asked again, as after a lost answer: W&B's own tests want success.
    assert "errors" not in client.graphql(DELETE, {"id": key})
    assert client.request("DELETE", "/api/runs/2").json() == {"deleted": "run2"}
    assert client.request("DELETE", "/api/runs/2").status == 404


def test_the_room_comes_back(client: Client, tracker: Tracker, home: Home, upsert: Upsert) -> None:
    key = upsert(name="run1")["bucket"]["id"]
    text = [json.dumps({"_step": step, "text": secrets.token_hex(300)}) for step in range(2_000)]
    for start in range(0, 2_000, 200):
        send(client, "run1", history=(start, text[start : start + 200]))

    def pages(connection: Any) -> int:
        found: int = connection.execute("PRAGMA page_count").fetchone()[0]
        return found

    before = tracker._database.read(pages).result()
    client.graphql(DELETE, {"id": key})  # To the trash: nothing goes before its 30 days are over.
    assert tracker._database.read(pages).result() >= before
    assert client.post("/api/trash/delete", {"runs": [1]}).json() == {"runs": [1]}
    while tracker._database.write(lambda connection: give_back(connection, 20)).result():
        pass
    after = tracker._database.read(pages).result()
    assert after < before / 2


def test_a_deleted_runs_client_is_told_to_stop_and_a_new_run_of_that_name_works(
    client: Client, upsert: Upsert
) -> None:
    key = upsert(name="run1")["bucket"]["id"]
    client.graphql(DELETE, {"id": key})
    late = client.post(STREAM.format("run1"), {"files": {}})
    assert (late.status, late.json()["error"]) == (404, "run ada/birds/run1 was deleted")
    # Neither does a late change of its config bring it back, by its id or by its name.
    for said in ({"id": f'"{key}"'}, {"name": '"run1"'}, {"id": f'"{key}"', "name": '"run1"'}):
        given = ", ".join(f"{name}: {value}" for name, value in said.items())
        answer = client.graphql(
            f'mutation {{ upsertBucket(input: {{{given}, modelName: "birds"}}) {{ inserted }} }}'
        )
        assert "errors" in answer
    # A run that nobody has heard of may be on its way back from a backup.
    assert client.post(STREAM.format("never"), {}).status == 503

    again = upsert(name="run1")
    assert again["inserted"] is True
    assert again["bucket"]["historyLineCount"] == 0
    assert again["bucket"]["id"] != key
    assert client.post(STREAM.format("run1"), {}).status == 200


def test_the_trash_keeps_runs_for_thirty_days_and_gives_them_back(
    client: Client, tracker: Tracker, home: Home, upsert: Upsert
) -> None:
    for name in ("run1", "run2", "run3"):
        upsert(name=name)
    send(client, "run1", history=(0, rows(0, 1)))
    upload(client, "a.txt", b"a")
    place = "/api/projects/ada/birds"
    put = client.post(f"{place}/trash", {"runs": [1, 2, 99]}).json()
    assert put["runs"] == [1, 2]
    # Nothing lists it, and nothing reaches it by its key, its id or its project.
    assert [run["id"] for run in client.get("/api/runs").json()] == ["run3"]
    assert client.get("/api/health").json()["runs"] == 1
    for path in ("/api/runs/1/metrics", "/api/run?name=run1", "/api/projects/ada/%2Ftrash/runs"):
        assert client.get(path).status == 404
    assert [project["runs"] for project in client.get("/api/projects").json()["projects"]] == [1]
    query = '{ models(entityName: "ada") { edges { node { name } } } }'
    assert "trash" not in json.dumps(client.graphql(query))
    assert client.get(f"{place}/runs").json()["columns"]["key"] == [3]
    assert client.post(STREAM.format("run1"), {}).status == 404
    # An id in the trash is free; then the old run cannot come back before the new one goes.
    upsert(name="run2")
    taken = client.post("/api/trash/restore", {"runs": [1, 2]})
    assert (taken.status, "another run 'run2'" in taken.json()["error"]) == (409, True)
    assert client.post("/api/trash/restore", {"runs": [1]}).json()["runs"] == [1]
    assert client.get("/api/run?name=run1").json()["steps"] == 2
    assert client.get("/api/run?name=run1").json()["state"] == "killed"
    assert len(_run_folders(home)) == 1
    assert client.post(STREAM.format("run1"), {}).status == 200
    # After thirty days it goes for good.
    listed = client.get("/api/trash").json()
    assert [(run["id"], run["project"], run["deleted_by"]) for run in listed] == [
        ("run2", "birds", "ada")
    ]
    month = 30 * 86_400
    assert round(listed[0]["gone_at"] - listed[0]["deleted_at"]) == month
    expired = tracker._database.read(lambda db: trash.expired(db, time.time() + month + 1)).result()
    assert expired == [2]
    assert tracker._database.read(lambda db: trash.expired(db, time.time() + 10)).result() == []


def test_runs_are_moved_to_another_project_together(client: Client, upsert: Upsert) -> None:
    for name in ("run1", "run2"):
        upsert(name=name)
    place = "/api/projects/ada/birds"
    assert client.post(f"{place}/move", {"runs": [1, 2], "to": "a/b"}).status == 400
    client.post(STREAM.format("run1"), {"complete": True, "exitcode": 0})
    refused = client.post(f"{place}/move", {"runs": [1, 2], "to": "fish"})
    assert (refused.status, "is at work" in refused.json()["error"]) == (409, True)
    # What its client logs is still taken.
    send(client, "run2", history=(0, rows(0, 1)))
    assert client.get("/api/run?name=birds/run2").json()["key"] == 2
    client.post(STREAM.format("run2"), {"complete": True, "exitcode": 0})
    assert client.post(f"{place}/move", {"runs": [1], "to": "fish"}).json()["runs"] == [1]
    upsert(name="run1")
    again = client.post(f"{place}/move", {"runs": [2, 3], "to": "fish"})
    assert (again.status, "run1" in again.json()["error"]) == (409, True)
    assert client.post(f"{place}/stop", {"runs": [2, 3]}).json()["runs"] == [2, 3]
    assert client.get("/api/run?name=fish/run1").json()["key"] == 1


def test_a_trial_is_moved_when_it_is_over(client: Client) -> None:
    """Its next attempt may name the project again, and would make a second run of that id."""
    sweep = sweeping.create(client)
    agent = sweeping.Agent(client, sweep["key"])
    held = agent.claim()
    sweeping.log(client, held, 0.5)
    agent.end(held, exit_code=-9, cause="node")
    key = held["run"]["key"]
    move = {"runs": [key], "to": "fish"}
    place = "/api/projects/ada/birds/move"
    assert client.post(place, move).status == 409
    held = agent.claim()
    assert held["run"]["key"] == key
    assert client.post(place, move).status == 409
    agent.end(held)
    assert client.post(place, move).json()["runs"] == [key]
    assert sweeping.show(client, sweep)["best"]["value"] == 0.5


def test_an_upload_for_a_deleted_run_leaves_nothing(
    client: Client, home: Home, upsert: Upsert
) -> None:
    key = upsert(name="run1")["bucket"]["id"]
    made = client.graphql(
        'mutation { createRunFiles(input: {projectName: "birds", runName: "run1", files: ["a"]}) '
        "{ files { uploadUrl } } }"
    )
    client.graphql(DELETE, {"id": key})
    upsert(name="run1")  # Of the same name, and not the one that the address was for.
    url = made["data"]["createRunFiles"]["files"][0]["uploadUrl"]
    assert client.put(url, b"late").status == 404
    assert _run_folders(home) == []


def test_files_that_a_killed_server_could_not_remove_go_at_the_next_start(
    home: Home, client: Client, tracker: Tracker, upsert: Upsert
) -> None:
    upsert(name="run1")
    upload(client, "a.txt", b"a")
    (folder,) = _run_folders(home)
    orphan = home.files / "4711"
    orphan.mkdir()
    (orphan / "x").write_bytes(b"x")
    tracker.close()
    again = Tracker(home)
    again.open(KEY)
    again.close()
    assert folder.exists()
    assert not orphan.exists()


STOP = "mutation($id: ID!) { stopRun(input: {id: $id}) { success } }"


def _state(client: Client, run: str = "run1") -> dict[str, Any]:
    query = 'query($run: String!) { project(name: "birds") { run(name: $run) { state stopped } } }'
    found: dict[str, Any] = client.graphql(query, {"run": run})["data"]["project"]["run"]
    return found


def test_a_run_that_is_asked_to_stop_hears_of_it_and_ends_as_killed(
    client: Client, upsert: Upsert
) -> None:
    key = upsert(name="run1")["bucket"]["id"]
    assert "stopped" not in client.post(STREAM.format("run1"), {}).json()
    assert client.graphql(STOP, {"id": key})["data"]["stopRun"]["success"] is True
    assert _state(client) == {"state": "running", "stopped": True}
    assert client.post(STREAM.format("run1"), {}).json()["stopped"] is True
    client.post(STREAM.format("run1"), {"complete": True, "exitcode": 255})
    assert _state(client)["state"] == "killed"
    # It starts anew, and is not stopped by the old wish.
    upsert(name="run1", id=key)
    assert _state(client) == {"state": "running", "stopped": False}


def test_stopping_what_has_ended_or_not_begun(client: Client, upsert: Upsert) -> None:
    key = upsert(name="run1")["bucket"]["id"]
    client.post(STREAM.format("run1"), {"complete": True, "exitcode": 0})
    client.graphql(STOP, {"id": key})
    assert _state(client) == {"state": "finished", "stopped": False}
    pending = upsert(name="run2", host=None)["bucket"]["id"]
    client.graphql(STOP, {"id": pending})
    assert _state(client, "run2")["state"] == "killed"


def test_a_stopped_program_without_a_client_is_ended_by_the_process_beside_it(
    client: Client, upsert: Upsert
) -> None:
    new = {"id": "run9", "project": "birds", "command": ["sleep", "9"]}
    made = client.post("/api/runs", new).json()
    place = f"/api/runs/{made['key']}"
    client.post(f"{place}/attempts", {"token": "t", "host": "node1", "pid": 1})
    console = f"{place}/attempts/1/console?offset=0"
    assert client.post(console, b"").json() == {"stored": 0, "stop": False}
    assert client.post(f"{place}/stop", {}).json()["stop_asked"] is True
    assert client.post(console, b"").json() == {"stored": 0, "stop": True}
    end = {"exit_code": 0, "ended_at": time.time()}
    assert client.post(f"{place}/attempts/1/end", end).json()["state"] == "killed"
