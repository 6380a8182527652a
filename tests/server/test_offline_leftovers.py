"""What `runyard run` recorded where it could not reach us: taken in from the spool, once."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from typing import Any

import pytest

from runyard.home import Home
from runyard.server.tracker import Tracker
from tests.server.asgi import Client
from tests.server.conftest import Upsert

NEW = {
    "id": "far",
    "project": "birds",
    "entity": None,
    "command": ["python", "train.py"],
    "host": "node7",
    "tags": ["t"],
}


def leave(home: Home, **more: Any) -> None:
    record = {"new": NEW, "token": "t1", "host": "node7", "pid": 1, "begun_at": 50.0, **more}
    (home.spool / "far-t1.json").write_text(json.dumps(record))
    (home.spool / "far-t1.log").write_bytes(b"hello from node7\n")


def far(client: Client) -> Any:
    return client.get("/api/run", name="far").json()


def test_the_run_its_console_and_its_end(client: Client, tracker: Tracker, home: Home) -> None:
    for _ in range(2):  # The second time as if we had been killed before the files were removed.
        leave(home, exit_code=3, ended_at=99.0)
        tracker.take_in_leftovers()
    run = far(client)
    assert (run["entity"], run["project"], run["state"]) == ("ada", "birds", "failed")
    assert (run["exit_code"], run["started_at"], run["ended_at"]) == (3, 50.0, 99.0)
    assert (run["command"], run["tags"]) == (["python", "train.py"], ["t"])
    assert len(run["attempts"]) == 1
    page = client.get(f"/api/runs/{run['key']}/console").json()
    assert page["text"] == "hello from node7\n"
    assert list(home.spool.iterdir()) == []


def test_on_another_machine_it_may_still_run(client: Client, tracker: Tracker, home: Home) -> None:
    leave(home)
    tracker.take_in_leftovers()
    assert client.get("/api/run", name="far").status == 404
    assert len(list(home.spool.iterdir())) == 2


def test_one_that_was_killed_here_is_lost(client: Client, tracker: Tracker, home: Home) -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    leave(home, host=socket.gethostname(), pid=child.pid)
    tracker.take_in_leftovers()
    assert far(client)["attempts"][0]["cause"] == "lost"


def test_the_clients_record_may_come_first(
    client: Client, tracker: Tracker, home: Home, upsert: Upsert
) -> None:
    upsert(name="far", project="chosen-by-the-program")
    leave(home, exit_code=0, ended_at=99.0)
    tracker.take_in_leftovers()
    run = far(client)
    assert (run["project"], run["state"]) == ("chosen-by-the-program", "finished")


@pytest.mark.parametrize("new", [{**NEW, "id": "../x"}, {"id": "far"}, []])
def test_a_bad_record_stops_nothing(client: Client, tracker: Tracker, home: Home, new: Any) -> None:
    leave(home, new=new, exit_code=0, ended_at=99.0)
    tracker.take_in_leftovers()
    assert client.get("/api/runs").json() == []
