"""Sweeps as W&B's commands, agents, public API and local controller speak of them."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
import yaml

from tests.server.asgi import Client
from tests.server.conftest import Upsert
from tests.server.sweeping import GRID

UPSERT_SWEEP = """
mutation UpsertSweep($id: ID, $config: String, $entityName: String, $projectName: String,
    $controller: JSONString, $state: String, $priorRunsFilters: JSONString,
    $displayName: String) {
  upsertSweep(input: {id: $id, config: $config, entityName: $entityName, projectName: $projectName,
      controller: $controller, state: $state, priorRunsFilters: $priorRunsFilters,
      displayName: $displayName}) {
    sweep { id name state project { id name entity { id name } } }
    configValidationWarnings
  }
}
"""
SWEEP = """
query($sweep: String!, $specs: [JSONString!]!) { project(name: "birds") { sweep(sweepName: $sweep) {
  id name displayName method state config controller scheduler bestLoss runCount runCountExpected
  priorRuns { edges { node { name } } }
  runs { edges { node { name state config stopped shouldStop exitcode summaryMetrics
    sampledHistory(specs: $specs) } } }
  agents { edges { node { id host state totalRuns runs { edges { node { name } } } } } } } } }
"""
CREATE_AGENT = """
mutation($sweep: String!, $project: String, $entity: String) { createAgent(input: {host: "node1",
  projectName: $project, entityName: $entity, sweep: $sweep}) { agent { id } } }
"""
HEARTBEAT = """
mutation($id: ID!, $runState: JSONString) { agentHeartbeat(input: {id: $id, runState: $runState}) {
  agent { id } commands } }
"""


def put(client: Client, config: Any = GRID, **more: Any) -> dict[str, Any]:
    """`upsertSweep` as clients send it: the file as YAML text."""
    text = None if config is None else yaml.dump(config)
    given = {"projectName": "birds", "config": text, **more}
    answer = client.graphql(UPSERT_SWEEP, given)
    assert "errors" not in answer, answer
    found: dict[str, Any] = answer["data"]["upsertSweep"]
    return found


def refused(client: Client, config: Any, **more: Any) -> str:
    given = {"projectName": "birds", "config": yaml.dump(config), **more}
    message: str = client.graphql(UPSERT_SWEEP, given)["errors"][0]["message"]
    return message


def read(client: Client, sweep: dict[str, Any]) -> dict[str, Any]:
    variables = {"sweep": sweep["name"], "specs": "{}"}
    found: dict[str, Any] = client.graphql(SWEEP, variables)["data"]["project"]["sweep"]
    return found


def begin(client: Client, sweep: dict[str, Any]) -> str:
    answer = client.graphql(CREATE_AGENT, {"sweep": sweep["name"], "project": "birds"})
    agent: str = answer["data"]["createAgent"]["agent"]["id"]
    return agent


def beat(client: Client, agent: str, *alive: str) -> list[dict[str, Any]]:
    given = {"id": agent, "runState": json.dumps(dict.fromkeys(alive, True))}
    answer = client.graphql(HEARTBEAT, given)["data"]["agentHeartbeat"]
    assert answer["agent"]["id"] == agent
    commands: list[dict[str, Any]] = json.loads(answer["commands"])
    return commands


def finish(client: Client, run: str, **summary: Any) -> None:
    lines = {"wandb-summary.json": {"offset": 0, "content": [json.dumps(summary)]}}
    body = {"files": lines, "complete": True, "exitcode": 0}
    assert client.post(f"/files/ada/birds/{run}/file_stream", body).status == 200


def test_a_sweep_from_its_file_to_its_end(client: Client) -> None:
    made = put(client)
    assert made["configValidationWarnings"] == []
    sweep = made["sweep"]
    assert sweep["project"]["entity"]["name"] == "ada"
    assert [read(client, sweep)[field] for field in ("state", "runCount")] == ["PENDING", 0]
    agent = begin(client, sweep)
    for number in range(6):
        (command,) = beat(client, agent)
        assert command["type"] == "run"
        assert command["program"] == "train.py"
        assert list(command["args"]) == ["lr", "size"]
        assert beat(client, agent, command["run_id"]) == []
        finish(client, command["run_id"], loss=6 - number)
    (command,) = beat(client, agent)
    assert command["type"] == "exit"
    told = read(client, sweep)
    assert (told["state"], told["method"], told["bestLoss"]) == ("FINISHED", "grid", 1)
    assert (told["runCount"], told["runCountExpected"]) == (6, 6)
    assert yaml.safe_load(told["config"]) == GRID
    assert [edge["node"]["state"] for edge in told["runs"]["edges"]] == ["finished"] * 6
    (node,) = [edge["node"] for edge in told["agents"]["edges"]]
    assert (node["host"], node["totalRuns"], len(node["runs"]["edges"])) == ("node1", 6, 6)


def test_a_file_with_mistakes_is_refused_with_all_of_them(client: Client) -> None:
    """W&B makes the sweep, warns, and fails when the first run is asked for."""
    bad = {**GRID, "method": "gird", "parameters": {"lr": {"min": 2.0, "max": 1.0}}}
    said = refused(client, bad)
    assert said.startswith("the sweep has 2 mistakes:\n")
    assert "method: " in said
    assert "grid" in said
    assert "parameters.lr" in said
    assert "a mistake" in refused(client, "just words")
    continuous = {"method": "grid", "parameters": {"lr": {"min": 0.1, "max": 1.0}}}
    assert "parameters.lr" in refused(client, continuous)


def test_a_sweep_for_a_launch_queue_is_refused(client: Client) -> None:
    launch = UPSERT_SWEEP.replace("state: $state", 'launchScheduler: "{}", state: $state')
    answer = client.graphql(launch, {"projectName": "birds", "config": yaml.dump(GRID)})
    assert "Launch" in answer["errors"][0]["message"]


def test_what_works_but_is_odd_is_a_warning(client: Client) -> None:
    old = {"distribution": "log_uniform", "min": -5.0, "max": -1.0}
    made = put(client, {"method": "random", "parameters": {"lr": old}})
    (warning,) = made["configValidationWarnings"]
    assert "log_uniform_values" in warning


def test_numbers_stay_numbers_on_their_way_through_yaml(client: Client) -> None:
    """A client that reads 3e-3 from a file takes it for a text, and sends it as it was written."""
    rates = "{values: [3e-3, 1E-5, 0.00001]}"
    text = f"method: grid\nprogram: t.py\nparameters: {{lr: {rates}}}"
    made = client.graphql(UPSERT_SWEEP, {"projectName": "birds", "config": text})
    sweep = made["data"]["upsertSweep"]["sweep"]
    told = yaml.safe_load(read(client, sweep)["config"])
    assert told["parameters"]["lr"]["values"] == [3e-3, 1e-5, 1e-5]
    (command,) = beat(client, begin(client, sweep))
    assert command["args"]["lr"]["value"] == 3e-3


def test_states_are_set_in_their_words(client: Client) -> None:
    sweep = put(client)["sweep"]
    agent = begin(client, sweep)
    (command,) = beat(client, agent)
    for state in ("PAUSED", "RUNNING", "FINISHED"):
        changed = put(client, None, id=sweep["id"], state=state)["sweep"]
        assert changed["state"] == state
        assert beat(client, agent, command["run_id"]) == []
    changed = put(client, None, id=sweep["id"], state="CANCELED")["sweep"]
    assert changed["state"] == "CANCELED"
    assert [one["type"] for one in beat(client, agent, command["run_id"])] == ["stop"]
    assert [one["type"] for one in beat(client, agent)] == ["exit"]


def test_a_file_is_changed_until_trials_are_drawn_from_it(client: Client) -> None:
    sweep = put(client)["sweep"]
    one = {**GRID, "parameters": {"lr": {"values": [1]}, "size": {"value": 5}}}
    assert put(client, one, id=sweep["id"])["sweep"]["name"] == sweep["name"]
    agent = begin(client, sweep)
    (command,) = beat(client, agent)
    assert command["args"] == {"lr": {"value": 1}, "size": {"value": 5}}
    assert "stay as they are" in refused(client, GRID, id=sweep["id"])
    assert put(client, one, id=sweep["id"])["sweep"]["name"] == sweep["name"]
    renamed = put(client, {**one, "name": "called so"}, id=sweep["id"])["sweep"]
    assert read(client, renamed)["displayName"] == "called so"


def test_a_sweep_gets_another_name_and_keeps_its_file(client: Client) -> None:
    sweep = put(client, {**GRID, "name": "first"})["sweep"]
    assert read(client, sweep)["displayName"] == "first"
    put(client, {**GRID, "name": "first"}, id=sweep["id"], displayName="second")
    assert read(client, sweep)["displayName"] == "second"
    assert yaml.safe_load(read(client, sweep)["config"])["name"] == "first"


def test_an_empty_command_is_the_usual_one(client: Client) -> None:
    sweep = put(client, {**GRID, "command": []})["sweep"]
    (command,) = beat(client, begin(client, sweep))
    assert command["program"] == GRID["program"]


def test_prior_runs_are_the_sweeps_and_count_as_tried(client: Client, upsert: Upsert) -> None:
    config = {"lr": {"value": 0.1}, "size": {"value": 16}}
    upsert(name="before", config=json.dumps(config))
    prior = json.dumps({"$or": [{"name": "before"}]})
    sweep = put(client, priorRunsFilters=prior)["sweep"]
    (command,) = beat(client, begin(client, sweep))
    assert command["args"] == {"lr": {"value": 0.1}, "size": {"value": 32}}
    names = [edge["node"]["name"] for edge in read(client, sweep)["runs"]["edges"]]
    assert names == ["before", command["run_id"]]
    assert [edge["node"]["name"] for edge in read(client, sweep)["priorRuns"]["edges"]] == [
        "before"
    ]
    nobody = json.dumps({"$or": [{"name": "nobody"}]})
    assert "nobody" in refused(client, GRID, priorRunsFilters=nobody)
    assert "priorRunsFilters" in refused(client, GRID, priorRunsFilters='{"$or": [{"name": 1}]}')


def test_a_scheduler_names_runs_by_ids_that_it_makes_up(client: Client, upsert: Upsert) -> None:
    """W&B's own scheduler does not ask for a run's id: it knows what W&B's server would say."""

    def change(mutation: str, *names: str) -> dict[str, Any]:
        id_ = base64.b64encode(":".join(["Run", "v1", *names]).encode()).decode()
        return client.graphql(f"mutation($id: ID!) {{ {mutation} }}", {"id": id_})

    sweep = put(client)["sweep"]
    (command,) = beat(client, begin(client, sweep))
    stop = "stopRun(input: {id: $id}) { success }"
    assert change(stop, command["run_id"], "birds", "ada")["data"]["stopRun"]["success"]
    (edge,) = read(client, sweep)["runs"]["edges"]
    assert edge["node"]["stopped"] or edge["node"]["state"] == "killed"
    for names in (("nobody", "birds", "ada"), (command["run_id"], "birds"), ("", "", "")):
        (error,) = change(stop, *names)["errors"]
        assert "no such run" in error["message"] or "not the id of" in error["message"]

    upsert(name="run1")
    note = 'upsertBucket(input: {id: $id, notes: "mine"}) { inserted bucket { name notes } }'
    assert change(note, "run1", "birds", "ada")["data"]["upsertBucket"] == {
        "inserted": False,
        "bucket": {"name": "run1", "notes": "mine"},
    }
    assert "no such run" in change(note, "run2", "birds", "ada")["errors"][0]["message"]


def test_the_state_of_a_sweeps_run_is_not_set_from_outside(client: Client) -> None:
    """Its trial would still be under way, and its agent would not hear of it."""
    sweep = put(client)["sweep"]
    beat(client, begin(client, sweep))
    query = """query($name: String!) { project(name: "birds") { sweep(sweepName: $name) {
      runs { edges { node { id state } } } } } }"""
    answer = client.graphql(query, {"name": sweep["name"]})
    (edge,) = answer["data"]["project"]["sweep"]["runs"]["edges"]
    change = 'mutation($id: ID!) { updateRunState(input: {id: $id, state: "failed"}) { success } }'
    (error,) = client.graphql(change, {"id": edge["node"]["id"]})["errors"]
    assert "runyard retry" in error["message"]
    assert read(client, sweep)["runs"]["edges"][0]["node"]["state"] == edge["node"]["state"]


def test_an_agent_whose_sweep_is_unknown_is_told_so_or_sent_home(client: Client) -> None:
    answer = client.graphql(CREATE_AGENT, {"sweep": "nowhere0", "project": "birds"})
    assert "there is no sweep ada/birds/nowhere0" in answer["errors"][0]["message"]
    unknown = "QWdlbnQ6OTk5"
    assert beat(client, unknown, "run1") == []
    assert [command["type"] for command in beat(client, unknown)] == ["exit"]


@pytest.mark.parametrize("odd", ["[]", "{", "7"])
def test_odd_heartbeats_are_refused(client: Client, odd: str) -> None:
    agent = begin(client, put(client)["sweep"])
    answer = client.graphql(HEARTBEAT, {"id": agent, "runState": odd})
    assert "runState" in answer["errors"][0]["message"]


def test_a_projects_sweeps_are_listed_page_by_page(client: Client) -> None:
    made = [put(client)["sweep"]["name"] for _ in range(3)]
    query = """query($after: String) { project(name: "birds") { totalSweeps
      sweeps(first: 2, after: $after) { edges { node { name } cursor }
        pageInfo { endCursor hasNextPage } } } }"""
    listed, after = [], None
    for has_next in (True, False):
        project = client.graphql(query, {"after": after})["data"]["project"]
        assert project["totalSweeps"] == 3
        listed += [edge["node"]["name"] for edge in project["sweeps"]["edges"]]
        assert project["sweeps"]["pageInfo"]["hasNextPage"] is has_next
        after = project["sweeps"]["pageInfo"]["endCursor"]
    assert listed == made[::-1]


def test_a_controller_elsewhere_draws_the_trials(client: Client) -> None:
    """`wandb.controller()`: what it schedules is run, and what it stops ends; so does the sweep."""
    config = {**GRID, "controller": {"type": "local"}}
    sweep = put(client, config)["sweep"]
    agent = begin(client, sweep)
    assert beat(client, agent) == []

    def say(**controller: Any) -> None:
        put(client, config, id=sweep["id"], controller=json.dumps(controller))

    wanted = {"lr": {"value": 0.5}, "size": {"value": 1}}
    say(schedule=[{"id": "first", "data": {"args": wanted}}])
    say(schedule=[{"id": "first", "data": {"args": wanted}}], earlystop=[])
    (command,) = beat(client, agent)
    assert command["args"] == wanted
    told = read(client, sweep)
    scheduled = json.loads(told["scheduler"])["scheduled"]
    assert scheduled == [{"id": "first", "runid": command["run_id"]}]
    assert json.loads(told["controller"])["earlystop"] == []
    assert told["runs"]["edges"][0]["node"]["sampledHistory"] == [[]]
    beat(client, agent, command["run_id"])
    assert client.post(f"/files/ada/birds/{command['run_id']}/file_stream", {}).status == 200
    say(schedule=[{"id": "last", "data": {"args": None}}], earlystop=[command["run_id"]])
    node = read(client, sweep)["runs"]["edges"][0]["node"]
    assert (node["state"], node["stopped"]) == ("running", True)
    assert read(client, sweep)["state"] == "RUNNING"
    finish(client, command["run_id"])
    assert read(client, sweep)["state"] == "FINISHED"
    assert [one["type"] for one in beat(client, agent)] == ["exit"]
