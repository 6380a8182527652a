"""News for the page: by asking, and as a stream of events."""

from __future__ import annotations

import contextlib
import http.client
import json
import sqlite3
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest

from runyard.client.api import Api
from runyard.client.discover import ensure_server
from runyard.client.http import Connection
from runyard.home import Home, read_discovery
from runyard.server.runs import runs
from runyard.server.tracker import Tracker
from tests.server import sweeping
from tests.server.asgi import Client, basic
from tests.server.conftest import Upsert
from tests.server.persons import Person, make_team
from tests.server.test_charts import keys_of, log

BIRDS = "/api/live?project=ada/birds"


def news(client: Client, since: int, scope: str = BIRDS) -> Any:
    return client.get(f"{scope}&since={since}").json()


def now(client: Client) -> int:
    revision: int = client.get(BIRDS).json()["revision"]
    return revision


def is_quiet(told: dict[str, Any]) -> bool:
    return not any(value for name, value in told.items() if name not in ("revision", "watch"))


def test_runs_points_and_deletions_are_told(client: Client, upsert: Upsert) -> None:
    for run in ("run1", "run2"):
        upsert(name=run)
    keys = keys_of(client)
    begin = now(client)
    assert is_quiet(news(client, begin))
    log(client, "run1", [{"_step": 0, "loss": 1}])
    first = news(client, begin)
    assert first["history"] == [keys["run1"]]
    assert first["revision"] > begin
    client.request("DELETE", f"/api/runs/{keys['run1']}")
    upsert(name="run2", displayName="other")
    second = news(client, first["revision"])
    assert second["deleted"] == [keys["run1"]]
    assert second["runs"] == [keys["run2"]]
    # Who has not asked since the beginning is told of what is there now.
    assert news(client, begin)["history"] == []


def test_the_project_that_a_run_leaves_is_told(
    client: Client, tracker: Tracker, upsert: Upsert
) -> None:
    """`runyard run` announces it in one project, the program names another."""
    client.post("/api/runs", {"id": "run1", "project": "birds", "command": ["python"]})
    key = keys_of(client)["run1"]
    begin = now(client)
    columns = "/api/projects/ada/birds/runs"
    first = client.get(columns)
    upsert(name="run1", project="fish")
    move(tracker, key, "frogs")
    assert news(client, begin)["deleted"] == [key]
    assert news(client, begin, "/api/live?project=ada/fish")["deleted"] == [key]
    frogs = news(client, begin, "/api/live?project=ada/frogs")
    assert (frogs["runs"], frogs["deleted"]) == ([key], [])
    assert client.get(columns, since=begin).json()["deleted"] == [key]
    again = client.request("GET", columns, headers={"if-none-match": first.headers["etag"]})
    assert again.status == 200
    move(tracker, key, "birds")
    back = client.get(columns, since=begin).json()
    assert (back["columns"]["key"], back["deleted"]) == ([key], [])


def move(tracker: Tracker, run: int, project: str) -> None:
    def change(connection: sqlite3.Connection) -> None:
        place = runs.ensure_project(connection, "ada", project, 1.0)
        runs.update(connection, run, project=place)

    tracker._database.write(change).result()


def test_names_of_a_run_that_left_are_not_its_old_projects(
    client: Client, tracker: Tracker, upsert: Upsert
) -> None:
    for run in ("run1", "run2"):
        upsert(name=run)
        log(client, run, [{"_step": 0, run: 1}])
    names = "/api/projects/ada/birds/keys"
    assert client.get(names).json()["metrics"] == ["run1", "run2"]
    move(tracker, keys_of(client)["run1"], "fish")
    assert client.get(names).json()["metrics"] == ["run2"]


def test_other_projects_are_not_told_of(client: Client, upsert: Upsert, bob: Person) -> None:
    upsert(name="run1")
    begin = now(client)
    upsert(name="run1", project="fish")
    assert is_quiet(news(client, begin))
    assert client.get(BIRDS, key=bob.key).status == 404
    assert client.get("/api/live?run=1", key=bob.key).status == 404


def test_no_flag_tells_of_what_is_somebody_elses(
    client: Client, upsert: Upsert, bob: Person
) -> None:
    """The pages of all projects and of all jobs hear of what their reader may see."""
    everything = "/api/live?projects=1&jobs=1"
    upsert(name="run1")
    sweep = sweeping.create(client, sweeping.GRID)
    begin = now(client)
    job = {"cluster": "c", "job_id": "7", "kind": "agents", "name": "j", "submitted_at": 1.0}
    assert client.post("/api/jobs", {**job, "sweep": sweep["key"]}).status == 200
    upsert(name="run2", project="fish")
    sweeping.Agent(client, sweep["key"])
    told = bob.get(f"{everything}&since={begin}").json()
    assert is_quiet(told)
    assert told["revision"] > begin
    seen = news(client, begin, everything)
    assert (seen["jobs"], seen["agents"], seen["projects"]) == (True, True, True)
    bob.log("r1")
    assert bob.get(f"{everything}&since={begin}").json()["projects"] is True
    assert bob.post("/api/jobs", job).status == 200
    assert bob.get(f"{everything}&since={begin}").json()["jobs"] is True


def test_nothing_has_changed_is_said_to_who_saw_it(ada: Person, bob: Person, eve: Person) -> None:
    """A browser keeps answers: they are not the next user's, nor those of who joins a team."""
    bob.log("r1")
    seen = {"if-none-match": bob.get("/api/projects").headers["etag"]}

    def again(person: Person) -> int:
        return person.client.request("GET", "/api/projects", key=person.key, headers=seen).status

    assert [again(bob), again(eve), again(ada)] == [304, 200, 200]
    make_team(bob, "crew", eve)
    assert again(bob) == 200


def test_who_remembers_another_server_is_told_to_ask_for_everything(
    client: Client, upsert: Upsert
) -> None:
    upsert(name="run1")
    assert news(client, 17)["whole"] is True
    assert client.get(BIRDS).json()["whole"] is True


def test_a_run_page_hears_of_its_console(client: Client, upsert: Upsert) -> None:
    upsert(name="run1")
    key = keys_of(client)["run1"]
    begin = now(client)
    content = {"files": {"output.log": {"offset": 0, "content": ["hello"]}}}
    assert client.post("/files/ada/birds/run1/file_stream", content).status == 200
    assert news(client, begin, f"/api/live?run={key}")["console"] == [key]
    assert news(client, begin)["console"] == []


def test_a_sweeps_page_hears_of_its_trials_and_agents(client: Client) -> None:
    sweep = sweeping.create(client)
    scope = f"/api/live?sweep={sweep['key']}"
    begin = client.get(scope).json()["revision"]
    agent = sweeping.Agent(client, sweep["key"])
    told = news(client, begin, scope)
    assert told["agents"] is True
    held = agent.claim()
    claimed = news(client, told["revision"], scope)
    assert claimed["sweeps"] == [sweep["key"]]
    agent.renew(held)  # A sign of life is no news.
    quiet = news(client, claimed["revision"], scope)
    assert is_quiet(quiet)
    agent.end(held)
    assert news(client, quiet["revision"], scope)["sweeps"] == [sweep["key"]]


def test_a_rolled_back_change_is_not_told(client: Client, upsert: Upsert) -> None:
    upsert(name="run1")
    begin = now(client)
    refused = client.post("/api/sweeps", {"config": {"method": "grid"}})
    assert refused.status == 400
    assert is_quiet(news(client, begin))


@contextlib.contextmanager
def events(api: Api, key: str, path: str, since: int | None = None) -> Iterator[Any]:
    """The stream of a page, as it comes."""
    host = api.url.removeprefix("http://")
    connection = http.client.HTTPConnection(host, timeout=90)
    headers = {"Authorization": basic(key), "Accept": "text/event-stream"}
    if since is not None:
        headers["Last-Event-ID"] = str(since)
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    assert response.headers["content-type"].startswith("text/event-stream")

    def read() -> Iterator[dict[str, Any]]:
        for line in response:
            if line.startswith(b"data: "):
                yield json.loads(line[6:])

    try:
        yield read()
    finally:
        connection.close()


@pytest.mark.live
def test_a_stream_ends_with_the_key_and_the_team(state_folder: Home) -> None:
    ensure_server(state_folder)
    discovery = read_discovery(state_folder)
    assert discovery is not None
    connection = Connection(discovery.url, discovery.key)
    api = Api(connection)
    api.people.add_team("crew", [])
    new = {"id": "run1", "project": "birds", "command": ["x"], "entity": "crew"}
    connection.post("/api/runs", new)
    key = api.people.add_user("bob")["key"]
    api.people.add_member("crew", "bob")
    with events(api, key, "/api/live?project=crew/birds") as stream:
        assert is_quiet(next(stream))
        api.people.remove_member("crew", "bob")
        assert list(stream) == []
    with events(api, key, "/api/live?projects=1") as stream:
        assert is_quiet(next(stream))
        api.people.remove_user("bob")
        assert list(stream) == []


@pytest.mark.live
def test_a_stream_tells_what_happens_and_goes_on_after_a_break(state_folder: Home) -> None:
    ensure_server(state_folder)
    discovery = read_discovery(state_folder)
    assert discovery is not None
    connection = Connection(discovery.url, discovery.key)
    api = Api(connection)
    new = {"id": "run1", "project": "birds", "command": ["x"], "folder": "/", "host": "here"}
    run = api.create_run(new)  # type: ignore[arg-type]
    path = f"/api/live?project={run['entity']}/birds"
    begin = connection.get(path)["revision"]
    with events(api, discovery.key, path, begin) as stream:
        assert is_quiet(next(stream))
        api.stop_run(run)
        told = next(stream)
        assert told["runs"] == [run["key"]]
    connection.request("PATCH", f"/api/runs/{run['key']}", {"name": "other"}, query=None)
    with events(api, discovery.key, path, told["revision"]) as stream:
        again = next(stream)
        assert again["runs"] == [run["key"]]
        assert again["revision"] > told["revision"]


@pytest.mark.live
def test_windows_share_a_stream_and_each_hears_its_own(state_folder: Home) -> None:
    ensure_server(state_folder)
    discovery = read_discovery(state_folder)
    assert discovery is not None
    connection = Connection(discovery.url, discovery.key)
    api = Api(connection)
    runs = {
        name: api.create_run(
            {"id": "run1", "project": name, "command": ["x"], "folder": "/", "host": "here"}
        )
        for name in ("birds", "fish")
    }
    begin = connection.get("/api/live?projects=1")["revision"]
    me = runs["birds"]["entity"]
    watches = [
        {"id": "a", "project": f"{me}/birds", "since": begin},
        {"id": "b", "project": f"{me}/fish", "since": begin},
        {"id": "gone", "run": 9999, "since": begin},
    ]
    query = urlencode([("watch", urlencode(watch)) for watch in watches])
    with events(api, discovery.key, f"/api/live?{query}") as stream:
        first = {told["watch"]: told for told in (next(stream) for _ in watches)}
        assert is_quiet(first["a"])
        assert is_quiet(first["b"])
        # What is not there any more: the window asks for it, and finds out.
        assert first["gone"]["whole"] is True
        api.stop_run(runs["fish"])
        told = next(stream)
        assert (told["watch"], told["runs"]) == ("b", [runs["fish"]["key"]])
        api.stop_run(runs["birds"])
        told = next(stream)
        assert (told["watch"], told["runs"]) == ("a", [runs["birds"]["key"]])
    # Nobody hears of what is not theirs, in this way either.
    bob = api.people.add_user("bob")["key"]
    with events(api, bob, f"/api/live?{query}") as stream:
        assert [next(stream)["whole"] for _ in watches] == [True, True, True]
