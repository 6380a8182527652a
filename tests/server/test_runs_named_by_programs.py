"""A program of `runyard run` that gives its run an id of its own: one run, not two."""

from __future__ import annotations

from typing import Any

import pytest

from tests.server.persons import Person

NEW = {"project": "birds", "command": ["python", "train.py"], "folder": "/home/ada/birds"}


class Started:
    """`runyard run`: the run is announced, its attempt begins, its program has a key."""

    def __init__(self, ada: Person, run: str = "announced") -> None:
        self.ada = ada
        self.run = ada.post("/api/runs", {**NEW, "id": run, "host": "node1"}).json()
        key = ada.post("/api/keys", {"label": "run", "kind": "run", "run": self.run["key"]}).json()
        self.program = Person(ada.client, "ada", key["key"])
        begun = {"host": "node1", "pid": 7, "token": f"token-{run}"}
        self._attempts = f"/api/runs/{self.run['key']}/attempts"
        self.number = ada.post(self._attempts, begun).json()["number"]

    def end(self, exit_code: int) -> dict[str, Any]:
        path = f"{self._attempts}/{self.number}/end"
        answer = self.ada.post(path, {"exit_code": exit_code, "ended_at": 2e9})
        assert answer.status == 200, answer.text
        ended: dict[str, Any] = answer.json()
        return ended


@pytest.fixture
def started(ada: Person) -> Started:
    return Started(ada)


def test_the_announced_run_takes_the_programs_id(ada: Person, started: Started) -> None:
    made = started.program.log("mine", displayName="yolo")["data"]["upsertBucket"]
    assert made["inserted"]
    assert ada.runs() == {"mine"}
    assert started.program.stream("ada", "mine") == 200
    ended = started.end(3)
    assert (ended["id"], ended["state"], ended["exit_code"]) == ("mine", "failed", 3)
    # The id that was printed when the program began still leads to it.
    for words in ("announced", "birds/announced", "mine"):
        found = ada.get("/api/run", name=words).json()
        assert (found["key"], found["name"]) == (started.run["key"], "yolo"), words


def test_also_in_another_project(ada: Person, started: Started) -> None:
    started.program.ask(
        'mutation { upsertBucket(input: {name: "mine", modelName: "fish", host: "node1"}) '
        "{ bucket { id } } }"
    )
    assert ada.get("/api/run", name="fish/mine").json()["key"] == started.run["key"]
    assert ada.runs() == {"mine"}


def test_the_first_of_several_is_ended_by_its_client(ada: Person, started: Started) -> None:
    """A failure in a later fold is none of the first."""
    started.program.log("fold0")
    started.program.post("/files/ada/birds/fold0/file_stream", {"complete": True, "exitcode": 0})
    started.program.log("fold1")
    assert started.end(1)["state"] == "finished"
    assert ada.runs() == {"fold0", "fold1"}


def test_the_first_of_several_that_lives_still_ends_with_its_program(
    ada: Person, started: Started
) -> None:
    started.program.log("fold0")
    started.program.log("fold1")
    assert started.end(1)["state"] == "failed"


def test_a_run_with_the_announced_id_keeps_it(ada: Person, started: Started) -> None:
    started.program.log("announced")
    started.program.log("another")
    assert ada.runs() == {"announced", "another"}
    started.program.post(
        "/files/ada/birds/announced/file_stream", {"complete": True, "exitcode": 0}
    )
    assert started.end(1)["state"] == "failed"  # What the program returned outweighs its client.


def test_who_else_begins_a_run_does_not_take_it(ada: Person, started: Started) -> None:
    ada.log("elsewhere")
    Started(ada, "second").program.log("theirs")
    assert ada.runs() == {"announced", "elsewhere", "theirs"}


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"config": '{"_wandb": {"value": {"t": {"3": [42]}}}}'}, id="a sync"),
        pytest.param({"state": "finished", "host": None}, id="made by hand"),
    ],
)
def test_what_is_no_start_of_a_program_does_not_take_it(
    ada: Person, started: Started, more: dict[str, Any]
) -> None:
    started.program.ask(
        "mutation U($config: JSONString, $host: String, $state: String) { upsertBucket(input: "
        '{name: "older", modelName: "birds", host: $host, config: $config, state: $state}) '
        "{ bucket { id } } }",
        **{"host": "node1", **more},
    )
    assert ada.runs() == {"announced", "older"}
