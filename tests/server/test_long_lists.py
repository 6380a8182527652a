"""Lists of many runs: what one answer reads, holds and keeps others waiting with is bounded.

Work is counted, not timed.
"""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from sqlite3 import Connection
from typing import Any

import pytest

from runyard.home import Home, read_discovery
from runyard.server.api import run_api
from runyard.server.runs import runs
from runyard.server.store.database import Database
from runyard.server.tracker import Tracker
from tests.conftest import RunRunyard, server_pids
from tests.server.asgi import Client, basic
from tests.server.conftest import Upsert


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
