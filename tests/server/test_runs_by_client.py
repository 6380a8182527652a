"""What a client says of its run, and what it is told."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from runyard.server.tracker import Tracker
from tests.server.asgi import Client
from tests.server.conftest import Upsert
from tests.server.persons import UPSERT

RESUME = """
query RunResumeStatus($project: String, $entity: String, $name: String!) {
  model(name: $project, entityName: $entity) {
    id name entity { id name }
    bucket(name: $name, missingOk: true) {
      id name summaryMetrics displayName logLineCount historyLineCount eventsLineCount
      historyTail eventsTail config tags notes wandbConfig(keys: ["t", "absent"])
    }
  }
}
"""
STREAM = "/files/ada/birds/run1/file_stream"


def _resume(client: Client, name: str = "run1", entity: str | None = None) -> Any:
    found = client.graphql(RESUME, {"project": "birds", "entity": entity, "name": name})
    return found["data"]["model"]["bucket"]


def _announce(client: Client, **more: object) -> int:
    new = {"id": "run1", "project": "birds", "command": ["python", "train.py"], **more}
    answer = client.post("/api/runs", new)
    assert answer.status == 200, answer.text
    key: int = answer.json()["key"]
    return key


def _run(client: Client, name: str = "run1") -> Any:
    return client.get("/api/run", name=name).json()


def test_a_run_is_created_with_all_that_the_stream_needs(upsert: Upsert) -> None:
    made = upsert(name="run1", config='{"lr": {"value": 0.1}}', tags=["a", "b"])
    assert made["inserted"] is True
    bucket = made["bucket"]
    assert bucket["name"] == "run1"
    assert bucket["project"] == {"name": "birds", "entity": {"name": "ada"}}
    assert bucket["displayName"].endswith("-1")
    assert bucket["state"] == "running"
    assert bucket["historyLineCount"] == 0
    assert bucket["tags"] == ["a", "b"]


def test_null_leaves_a_field_as_it_is(upsert: Upsert) -> None:
    upsert(name="run1", displayName="first", notes="n", groupName="g", tags=["t"], config="{}")
    again = upsert(name="run1", host=None, config='{"b": {"value": 2}}')
    assert again["inserted"] is False
    assert again["bucket"]["displayName"] == "first"
    assert again["bucket"]["notes"] == "n"
    assert again["bucket"]["group"] == "g"
    assert again["bucket"]["tags"] == ["t"]
    assert json.loads(again["bucket"]["config"]) == {"b": {"value": 2}}


def test_variables_that_are_left_out_are_as_good_as_null(client: Client) -> None:
    answer = client.graphql(UPSERT, {"name": "run1", "host": "node1"})
    assert answer["data"]["upsertBucket"]["bucket"]["project"]["name"] == "uncategorized"


def test_an_empty_entity_is_ones_own(upsert: Upsert) -> None:
    assert upsert(name="run1", entity="")["bucket"]["project"]["entity"]["name"] == "ada"
    assert upsert(name="run1", entity="team")["inserted"] is True


def test_by_id_whatever_the_names_say(upsert: Upsert, client: Client) -> None:
    made = upsert(name="run1")["bucket"]
    same = upsert(id=made["id"], name=None, project=None, host=None, displayName="renamed")
    assert same["inserted"] is False
    assert same["bucket"]["name"] == "run1"
    assert same["bucket"]["displayName"] == "renamed"
    assert len(client.get("/api/runs").json()) == 1


def test_an_update_through_the_public_api_does_not_revive_a_run(
    upsert: Upsert, client: Client
) -> None:
    made = upsert(name="run1")["bucket"]
    client.post(STREAM, {"complete": True, "exitcode": 0})
    changed = upsert(id=made["id"], host=None, summaryMetrics='{"best": 1}', state="running")
    assert changed["bucket"]["state"] == "finished"
    assert json.loads(changed["bucket"]["summaryMetrics"]) == {"best": 1}
    assert upsert(name="run1")["bucket"]["state"] == "running"  # A client that starts does.


def test_a_run_made_by_hand_may_name_its_state(upsert: Upsert) -> None:
    assert upsert(name="run1", host=None)["bucket"]["state"] == "pending"
    assert upsert(name="run2", host=None, state="finished")["bucket"]["state"] == "finished"
    assert upsert(name="run3", host=None, state="dancing")["bucket"]["state"] == "pending"


def test_an_announced_run_is_adopted_into_the_project_that_its_program_names(
    upsert: Upsert, client: Client
) -> None:
    key = _announce(client, project="folder-name")
    assert _resume(client) is None
    made = upsert(name="run1", project="birds", entity="team")
    assert made["inserted"] is True
    found = client.get("/api/runs").json()
    assert [(run["key"], run["entity"], run["project"]) for run in found] == [
        (key, "team", "birds")
    ]
    # Once a client has written to it, the same id elsewhere is another run.
    upsert(name="run1", project="other")
    assert len(client.get("/api/runs").json()) == 2


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"name": "a/b"}, "run id"),
        ({"name": ""}, "run id"),
        ({"name": " a"}, "run id"),
        ({"name": ".."}, "run id"),
        ({"name": "a\nb"}, "run id"),
        ({"name": "x" * 129}, "run id"),
        ({"name": 7}, "not a text"),
        ({"project": "a/b"}, "project"),
        ({"project": "x" * 129}, "project"),
        ({"entity": "a/b"}, "project"),
        ({"id": "nonsense"}, "not the id"),
        ({"id": base64.b64encode(b"Run:" + b"9" * 30).decode()}, "not the id"),
        ({"id": base64.b64encode(b"Run:77").decode(), "name": None}, "no such run"),
        ({"config": "[]"}, "config"),
        ({"config": "{"}, "config"),
        ({"config": '{"a":' * 5_000}, "config"),
        ({"config": {"a": 1}}, "not a text"),
        ({"tags": [1]}, "tags"),
        ({"notes": {}}, "not a text"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_cannot_be_is_refused_and_not_retried(
    client: Client, wrong: dict[str, Any], said: str
) -> None:
    answer = client.graphql(UPSERT, {"name": "run1", "project": "birds", "host": "n", **wrong})
    assert answer["data"] is None
    assert said in answer["errors"][0]["message"]
    assert client.get("/api/runs").json() == []


def test_odd_but_harmless_things_are_taken(upsert: Upsert, client: Client) -> None:
    upsert(name="run1", tags="one", notes="half \ud800", config='{"x": {"value": NaN}}')
    run = _run(client)
    assert run["tags"] == ["one"]
    assert run["notes"] == "half ?"
    assert run["config"] == {"x": "NaN"}


def test_resuming_finds_nothing_before_a_client_has_written(client: Client) -> None:
    assert _resume(client) is None
    _announce(client)
    assert _resume(client) is None


def test_resuming_finds_everything_afterwards(upsert: Upsert, client: Client) -> None:
    upsert(name="run1", config='{"_wandb": {"value": {"t": {"1": 2}}}}')
    fresh = _resume(client)
    assert fresh["historyTail"] == fresh["eventsTail"] == '["{}"]'
    assert all(fresh[name] == 0 for name in ("historyLineCount", "eventsLineCount", "logLineCount"))
    assert fresh["summaryMetrics"] == "{}"
    assert json.loads(fresh["wandbConfig"]) == {"t": {"1": 2}}
    assert [name for name, value in fresh.items() if value is None] == ["notes"]

    line = '{"_step":5,"loss":NaN}'
    files = {
        "wandb-history.jsonl": {"offset": 5, "content": [line]},
        "wandb-events.jsonl": {"offset": 0, "content": ["{}", '{"_runtime":9}']},
        "output.log": {"offset": 0, "content": ["a", "b", "c"]},
    }
    client.post(STREAM, {"files": files})
    after = _resume(client)
    assert json.loads(after["historyTail"]) == [line]
    assert json.loads(after["eventsTail"]) == ['{"_runtime":9}']
    assert (after["historyLineCount"], after["eventsLineCount"], after["logLineCount"]) == (6, 2, 3)


@pytest.mark.parametrize("config", ["{}", '{"_wandb": 3}', '{"_wandb": {"value": [1]}}'])
def test_keys_that_the_client_did_not_keep_stay_away(
    upsert: Upsert, client: Client, config: str
) -> None:
    upsert(name="run1", config=config)
    assert json.loads(_resume(client)["wandbConfig"]) == {}


def test_syncing_a_dead_program_does_not_undo_its_end(
    upsert: Upsert, client: Client, tracker: Tracker
) -> None:
    key = _announce(client)
    number = client.post(f"/api/runs/{key}/attempts", {"token": "t", "host": "h", "pid": 1}).json()
    upsert(name="run1")
    end = {"exit_code": -9, "ended_at": 100.0}
    client.post(f"/api/runs/{key}/attempts/{number['number']}/end", end)
    # `wandb sync` starts like a client, without naming the run's key, and completes with 1.
    assert upsert(name="run1")["bucket"]["state"] == "crashed"
    rows = {"wandb-history.jsonl": {"offset": 0, "content": ['{"a": 1}']}}
    client.post(STREAM, {"files": rows, "complete": True, "exitcode": 1})
    run = _run(client)
    assert (run["state"], run["exit_code"], run["steps"]) == ("crashed", 137, 1)


def test_a_client_that_resumes_beside_runyard_has_its_own_end(
    upsert: Upsert, client: Client, tracker: Tracker
) -> None:
    key = _announce(client)
    client.post(f"/api/runs/{key}/attempts", {"token": "t", "host": "h", "pid": 1})
    made = upsert(name="run1")["bucket"]
    client.post(f"/api/runs/{key}/attempts/1/end", {"exit_code": 1, "ended_at": 100.0})
    assert upsert(name="run1", id=made["id"])["bucket"]["state"] == "running"
    client.post(STREAM, {"complete": True, "exitcode": 0})
    assert (_run(client)["state"], _run(client)["exit_code"]) == ("finished", 0)


CREATE = """
mutation CreateRunFiles($entity: String!, $project: String!, $run: String!, $files: [String!]!) {
  createRunFiles(
      input: {entityName: $entity, projectName: $project, runName: $run, files: $files}) {
    runID uploadHeaders files { name uploadUrl }
  }
}
"""


def _create_files(client: Client, files: object, run: str = "run1") -> dict[str, Any]:
    names = {"entity": "ada", "project": "birds", "run": run, "files": files}
    return client.graphql(CREATE, names)


def test_one_address_for_each_file_in_order(upsert: Upsert, client: Client) -> None:
    upsert(name="run1")
    names = ["b.txt", "media/images/a_1_f00.png", "b.txt", "é ü.json"]
    answer = _create_files(client, names)["data"]["createRunFiles"]
    assert [file["name"] for file in answer["files"]] == names
    # Absolute, by the name under which the client reached us.
    for file in answer["files"]:
        assert file["uploadUrl"].startswith("http://yard.example:8123/uploads/")
    assert answer["uploadHeaders"] == []
    assert _create_files(client, [])["data"]["createRunFiles"]["files"] == []
    single = _create_files(client, "abc")["data"]["createRunFiles"]["files"]
    assert [file["name"] for file in single] == ["abc"]


@pytest.mark.parametrize(
    "name",
    ["", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a/.", "a\x00b", "a\nb", "x" * 1025, 7],
    ids=lambda value: repr(value)[:40],
)
def test_hostile_names_are_refused(upsert: Upsert, client: Client, name: object) -> None:
    upsert(name="run1")
    answer = _create_files(client, ["good.txt", name])
    assert answer["data"] is None
    assert answer["errors"]


def test_files_of_a_run_that_is_not_there(client: Client) -> None:
    assert "run9" in _create_files(client, ["a"], run="run9")["errors"][0]["message"]


def test_an_operation_with_an_empty_name(client: Client) -> None:
    answer = client.graphql("{ viewer { entity flags } }", None, operationName="")
    assert answer == {"data": {"viewer": {"entity": "ada", "flags": "{}"}}}


def test_trouble_with_the_document_is_an_error_in_a_200(client: Client) -> None:
    assert client.graphql("{ viewer {")["errors"][0]["message"]
    assert client.graphql("{" + "a{" * 10_000)["errors"][0]["message"]


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b'{"query": 1}', b'{"query": "{a}", "variables": []}', b"[" * 100_000],
    ids=lambda body: body[:20],
)
def test_what_is_no_request_at_all(client: Client, body: bytes) -> None:
    assert client.post("/graphql", body).status == 400
