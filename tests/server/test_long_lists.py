"""Lists of many runs: what one answer reads, holds and keeps others waiting with is bounded.

Work is counted, not timed.
"""

from __future__ import annotations

import json
import random
import urllib.request
from pathlib import Path
from sqlite3 import Connection
from typing import Any

import pytest

from runyard.home import Home, read_discovery
from runyard.server.api import run_api
from runyard.server.history.reading import project_keys, project_overview
from runyard.server.listing import run_listing, run_lists
from runyard.server.listing.field_memory import FieldMemory
from runyard.server.listing.filters import read_filter
from runyard.server.listing.orders import read_order
from runyard.server.listing.run_lists import Filter, RunLists
from runyard.server.people.permissions import Entities
from runyard.server.runs import runs
from runyard.server.store.database import Database
from runyard.server.tracker import Tracker
from tests.conftest import RunRunyard, server_pids
from tests.server.asgi import Client, basic
from tests.server.conftest import Upsert, a_run
from tests.server.memory import Question, empty_store


def test_a_list_of_runs_is_read_piece_by_piece(
    client: Client, tracker: Tracker, upsert: Upsert, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_api, "_RUNS_AT_ONCE", 3)
    for number in range(8):
        upsert(name=f"run{number}")
    upsert(name="run4", summaryMetrics='{"loss": NaN}')
    pieces: list[int] = []
    by_keys = runs.by_keys

    def count(db: Connection, keys: Any) -> Any:
        pieces.append(len(keys))
        return by_keys(db, keys)

    monkeypatch.setattr(runs, "by_keys", count)
    listed = client.get("/api/runs")
    assert [run["id"] for run in listed.json()] == [f"run{number}" for number in range(7, -1, -1)]
    assert pieces == [3, 3, 2]
    assert "content-length" not in listed.headers  # Sent before the last run was read.
    assert listed.json()[3]["summary"] == {"loss": "NaN"}
    # A short list is one answer, as before.
    assert "content-length" in client.get("/api/runs", limit=3).headers
    assert client.get("/api/runs", project="fish").json() == []


@pytest.mark.parametrize("gone", [range(3), range(3, 6), range(6, 8), range(8)])
def test_runs_that_go_while_they_are_listed_are_left_out(
    client: Client,
    tracker: Tracker,
    upsert: Upsert,
    monkeypatch: pytest.MonkeyPatch,
    gone: range,
) -> None:
    monkeypatch.setattr(run_api, "_RUNS_AT_ONCE", 3)
    for number in range(8):
        upsert(name=f"run{number}")
    by_keys = runs.by_keys

    def without(db: Connection, keys: Any) -> Any:
        return [row for row in by_keys(db, keys) if int(row["id"][3:]) not in gone]

    monkeypatch.setattr(runs, "by_keys", without)
    listed = client.get("/api/runs").json()
    assert [run["id"] for run in listed] == [
        f"run{number}" for number in range(7, -1, -1) if number not in gone
    ]


def test_the_page_gets_a_list_in_slices(client: Client, upsert: Upsert) -> None:
    for number in range(7):
        upsert(name=f"run{number}", config=json.dumps({"lr": {"value": number}}))
    path = "/api/projects/ada/birds/runs?config=lr"
    names, values, sizes, where = list[str](), list[int](), list[int](), ""
    while not sizes or sizes[-1] == 3:
        found = client.get(f"{path}&limit=3{where}").json()
        assert (found["whole"], found["total"]) == (True, 7 + len(sizes))
        columns = found["columns"]
        names += columns["id"]
        values += found["config"]["lr"]
        sizes.append(len(columns["id"]))
        # A run that comes meanwhile moves no other into another slice.
        upsert(name=f"late{len(sizes)}")
        where = f"&before={columns['created_at'][-1]}&key={columns['key'][-1]}"
    assert names == [f"run{number}" for number in range(6, -1, -1)]
    assert values == list(range(6, -1, -1))
    assert sizes == [3, 3, 1]
    assert client.get(path).json()["total"] == 10
    assert client.get(f"{path}&limit=3&before=soon&key=1").status == 400


LIST = """query($filters: JSONString, $order: String, $after: String, $first: Int) {
  project(name: "birds") { runCount(filters: $filters)
    runs(filters: $filters, order: $order, after: $after, first: $first) {
      edges { node { name } } pageInfo { endCursor hasNextPage } } } }"""


def test_pages_of_a_filtered_list_look_at_each_run_once(
    client: Client, tracker: Tracker, upsert: Upsert, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(12):
        upsert(name=f"run{number}", config=json.dumps({"lr": {"value": number}}))
    seen = _count_rows_read(tracker, monkeypatch)

    def walk() -> list[str]:
        names, after = list[str](), None
        while True:
            given = {"filters": '{"config.lr": {"$gte": 2}}', "after": after, "first": 2}
            found = client.graphql(LIST, given)["data"]["project"]
            assert found["runCount"] == 10
            names += [edge["node"]["name"] for edge in found["runs"]["edges"]]
            if not found["runs"]["pageInfo"]["hasNextPage"]:
                return names
            after = found["runs"]["pageInfo"]["endCursor"]

    assert walk() == [f"run{number}" for number in range(2, 12)]
    assert seen == [12]
    # Of a project that goes on, only what has changed is looked at again.
    upsert(name="run3", config='{"lr": {"value": 1}}')
    upsert(name="run0", config='{"lr": {"value": 5}}')
    assert walk() == [f"run{number}" for number in (0, 2, *range(4, 12))]
    assert seen == [12, 2]


def _count_rows_read(tracker: Tracker, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    seen: list[int] = []
    read = tracker.remembered.read

    def count(*given: Any) -> Any:
        rows, values = read(*given)
        seen.append(len(rows))
        return rows, values

    monkeypatch.setattr(tracker.remembered, "read", count)
    return seen


@pytest.mark.parametrize(
    "text",
    [
        '{"config.x": {"$gte": 3}}',
        '{"state": "failed"}',
        '{"$or": [{"state": "failed"}, {"summary_metrics.y": 1}]}',
        '{"heartbeatAt": {"$gt": 4}}',
        '{"commit": "c3"}',
        '{"tags": "best"}',
        '{"displayName": {"$regex": "5$"}}',
    ],
)
@pytest.mark.parametrize(
    "order", ["+created_at", "-summary_metrics.y", "+heartbeat_at", "-state", "+commit"]
)
def test_a_list_that_is_remembered_is_the_list_as_it_is(
    database: Database, text: str, order: str
) -> None:
    """Whatever changes in between: runs come, change, move away, come back and are deleted."""
    chance = random.Random(text + order)
    chosen, by = Filter(text, read_filter(text)), read_order(order)
    memory = FieldMemory()
    lists = RunLists(database.changes, memory)
    for number in range(20):
        a_run(database, f"run{number}")
    database.write(
        lambda db: db.execute(
            "INSERT INTO projects (entity, name, created_at) VALUES ('a', 'b', 0)"
        )
    ).result()
    for _ in range(25):
        what, value = chance.choice(
            [
                ("config = ?", json.dumps({"x": {"value": chance.randrange(6)}})),
                ("summary = ?", json.dumps({"y": chance.randrange(3)})),
                ("state = ?", chance.choice(["failed", "finished"])),
                ("heartbeat_at = ?", chance.randrange(9)),
                ("commit_hash = ?", f"c{chance.randrange(5)}"),
                ("tags = ?", chance.choice(['["best"]', "[]"])),
                ("name = ?", f"n{chance.randrange(9)}"),
                ("project = ?", chance.choice([1, 2])),
            ]
        )
        keys = [chance.randrange(1, 21) for _ in range(3)]

        def change(db: Connection, what: str = what, value: Any = value, keys: Any = keys) -> None:
            for key in keys:
                db.execute(f"UPDATE runs SET {what} WHERE key = ?", (value, key))
            if value == "[]":
                db.execute("DELETE FROM runs WHERE key = ?", (keys[0],))

        database.write(change).result()

        def read(db: Connection, lists: RunLists) -> tuple[int, list[int], bool]:
            page = lists.read_page(db, 1, chosen, by, None, 7)
            return lists.count(db, 1, chosen), [row["key"] for row, _ in page.runs], page.more

        fresh = RunLists(database.changes, FieldMemory())
        assert (
            database.read(lambda db: read(db, lists)).result()
            == database.read(lambda db, fresh=fresh: read(db, fresh)).result()  # type: ignore[misc]
        )


def test_few_lists_are_remembered(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_lists, "_MOST_PLACES", 10)
    lists = RunLists(database.changes, FieldMemory())
    for number in range(4):
        a_run(database, f"run{number}")
    for number in range(5):
        text = f'{{"config.x{number}": null}}'
        chosen = Filter(text, read_filter(text))
        database.read(lambda db, chosen=chosen: lists.count(db, 1, chosen)).result()  # type: ignore[misc]
    assert len(lists._known) == 2
    long = Filter(" " * 20_000, read_filter('{"config.x": null}'))
    assert database.read(lambda db: lists.count(db, 1, long)).result() == 4
    assert len(lists._known) == 2


def test_names_of_a_project_cost_one_look_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    names: dict[str, project_keys.Name] = {}
    contents: list[dict[str, Any]] = [
        {
            "lr": number / 7,
            "seed": number,
            "same": 1,
            "odd": None,
            "mixed": 1 if number % 2 else "a",
        }
        for number in range(50)
    ]
    contents += [{"odd": 3}, {"odd": "x"}, {"odd": 2.5}, {"lr": None}, {"seed": "text"}]
    looked_at: list[str] = []
    note_value = project_keys._note_value

    def count(known: Any, media: Any, name: str, value: Any) -> None:
        looked_at.append(name)
        note_value(known, media, name, value)

    monkeypatch.setattr(project_keys, "_note_value", count)
    for content in contents:
        project_keys._note(names, {}, content)
    found = {name: (entry.kind, entry.varies) for name, entry in names.items()}
    assert found == {
        "lr": ("number", True),
        "seed": ("other", True),
        "same": ("number", False),
        "odd": ("number", True),  # Of the last value, where the first run has none.
        "mixed": ("other", True),
    }
    # A name that varies is settled by its first two values; one that does not is compared.
    assert looked_at.count("lr") == 3
    assert looked_at.count("mixed") == 3
    assert looked_at.count("same") == 50


@pytest.mark.parametrize(
    "question",
    [
        pytest.param(lambda db: project_overview._count(db, 1), id="a project's states"),
        pytest.param(lambda db: project_overview._activity(db, 1, 0.0), id="a project's activity"),
        pytest.param(lambda db: runs.newest(db, None, None, None), id="all runs"),
        pytest.param(lambda db: runs.newest(db, None, "failed", None), id="runs in a state"),
        pytest.param(lambda db: runs.count_of(db, Entities(frozenset({"ada"}))), id="counts"),
        pytest.param(lambda db: run_listing.count_all(db, 1), id="runs of a project"),
    ],
)
def test_what_is_asked_of_every_run_is_in_an_index(question: Question) -> None:
    """No row of `runs` is read for it: those have texts of some kilobytes."""
    db = empty_store()
    asked: list[str] = []
    db.set_trace_callback(asked.append)
    question(db)
    db.set_trace_callback(None)
    steps = [
        step["detail"]
        for statement in asked
        if statement.startswith("SELECT")
        for step in db.execute(f"EXPLAIN QUERY PLAN {statement}")
        if " runs" in step["detail"]
    ]
    db.close()
    assert steps
    assert [step for step in steps if "COVERING INDEX" not in step] == []


@pytest.mark.live
def test_a_list_of_any_size_leaves_the_server_small(
    runyard: RunRunyard, state_folder: Home
) -> None:
    """150 MB of runs, and a server that needs no tenth of it to send them."""
    assert runyard("server", "start").returncode == 0
    assert runyard("server", "stop").returncode == 0
    _fill(state_folder, count=5_000, size=30_000)
    assert runyard("server", "start").returncode == 0
    (pid,) = server_pids(state_folder)
    _get(state_folder, "/api/runs?limit=500")
    before = _peak_megabytes(pid)
    assert _get(state_folder, "/api/runs") > 150_000_000
    assert _peak_megabytes(pid) < before + 40


def _fill(home: Home, count: int, size: int) -> None:
    database = Database(home.database)
    database.open()

    def fill(db: Connection) -> None:
        user = db.execute("SELECT key, name FROM users").fetchone()
        project = runs.ensure_project(db, user["name"], "birds", 0.0)
        config = json.dumps({f"k{number}": {"value": "x" * 90} for number in range(size // 100)})
        db.executemany(
            "INSERT INTO runs (id, project, user, name, state, config, created_at) "
            "VALUES (?, ?, ?, 'n', 'finished', ?, ?)",
            ((f"r{number}", project, user["key"], config, number) for number in range(count)),
        )

    database.write(fill).result()
    database.close()


def _get(home: Home, path: str) -> int:
    """The size of an answer."""
    discovery = read_discovery(home)
    assert discovery is not None
    headers = {"Authorization": basic(discovery.key)}
    request = urllib.request.Request(discovery.url + path, headers=headers)
    size = 0
    with urllib.request.urlopen(request, timeout=300) as response:
        while piece := response.read(1 << 20):
            size += len(piece)
    return size


def _peak_megabytes(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024
