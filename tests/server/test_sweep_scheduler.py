"""`enqueueSweepRun`: trials that `wandb sweep-scheduler` suggests, as wandb-core sends them."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest

from runyard.server.tracker import Tracker
from runyard.server.tracking.streams import mark_silent
from tests.server.asgi import Client
from tests.server.persons import Person
from tests.server.sweeping import GRID, Agent
from tests.server.test_wandb_sweeps import UPSERT_SWEEP, beat, begin, finish, put

OPTUNA = {**GRID, "method": "custom", "scheduler": {"engine": "optuna"}}
ENQUEUE = """
mutation EnqueueSweepRun($id: ID!, $config: JSONString!, $displayName: String) {
  enqueueSweepRun(input: {id: $id, config: $config, displayName: $displayName}) {
    id runQueueItemId } }
"""
FACTS = """
query SweepConfig($sweep: String!) { project(name: "birds") { sweep(sweepName: $sweep) {
  id state config displayName controllerRunName } } }
"""
RUNS = """
query SweepRunsWithHistory($sweep: String!, $first: Int!, $cursor: String, $specs: [JSONString!]!) {
  project(name: "birds") { sweep(sweepName: $sweep) { state runs(first: $first, after: $cursor) {
    ...SweepPollRuns } } } }
fragment SweepPollRuns on RunConnection { pageInfo { hasNextPage endCursor } edges { node {
  id name state config summaryMetrics sampledHistory(specs: $specs) } } }
"""
WATCHED = """
query SweepWatchedRuns($filters: JSONString!) { project(name: "birds") {
  runs(filters: $filters, first: 100) { edges { node { id name state displayName } } } } }
"""
ONE = 'query($run: String!) { project(name: "birds") { run(name: $run) { state } } }'
STOP = "mutation StopRun($id: ID!) { stopRun(input: {id: $id}) { success } }"
DELETE = "mutation($id: ID!) { deleteRun(input: {id: $id}) { success } }"


def enqueue(client: Client, sweep: dict[str, Any], **values: Any) -> str:
    """The id of the run that a suggestion becomes."""
    config = json.dumps({name: {"value": value} for name, value in values.items()})
    answer = client.graphql(ENQUEUE, {"id": sweep["id"], "config": config})
    assert "errors" not in answer, answer
    run: str = answer["data"]["enqueueSweepRun"]["id"]
    return run


def refusal(person: Client | Person, sweep: dict[str, Any], config: str = "{}") -> str:
    variables = {"query": ENQUEUE, "variables": {"id": sweep["id"], "config": config}}
    answer = person.post("/graphql", variables).json()
    message: str = answer["errors"][0]["message"]
    return message


def watch(client: Client, *names: str) -> dict[str, dict[str, Any]]:
    """Runs by their ids, as a scheduler asks for those that it waits for."""
    filters = json.dumps({"name": {"$in": names}})
    edges = client.graphql(WATCHED, {"filters": filters})["data"]["project"]["runs"]["edges"]
    return {edge["node"]["name"]: edge["node"] for edge in edges}


def state_of(client: Client, run: str) -> str:
    state: str = watch(client, run)[run]["state"]
    return state


def facts(client: Client, sweep: dict[str, Any]) -> dict[str, Any]:
    answer = client.graphql(FACTS, {"sweep": sweep["name"]})
    told: dict[str, Any] = answer["data"]["project"]["sweep"]
    return told


def test_a_suggestion_is_a_pending_run_at_once_and_the_next_that_an_agent_gets(
    client: Client,
) -> None:
    made = put(client, OPTUNA)
    assert made["configValidationWarnings"] == []  # Clients would call it malformed.
    sweep = made["sweep"]
    agent = begin(client, sweep)
    assert beat(client, agent) == []
    first = enqueue(client, sweep, lr=0.5, size=7)
    second = enqueue(client, sweep, lr=0.5, size=7)
    assert first != second
    assert {state_of(client, run) for run in (first, second)} == {"pending"}
    (command,) = beat(client, agent)
    assert command["type"] == "run"
    assert command["run_id"] == first
    assert command["args"] == {"lr": {"value": 0.5}, "size": {"value": 7}}
    finish(client, first, loss=0.25)
    assert state_of(client, first) == "finished"
    own = Agent(client, 1)
    held = own.claim()
    assert held["run"]["id"] == second
    assert held["trial"]["values"] == {"lr": 0.5, "size": 7}
    assert state_of(client, second) == "running"
    assert facts(client, sweep)["state"] == "RUNNING"


def test_the_facts_of_a_sweep_and_its_runs_page_by_page(client: Client) -> None:
    sweep = put(client, OPTUNA)["sweep"]
    told = facts(client, sweep)
    assert told["controllerRunName"] == f"{sweep['name']}-scheduler"
    assert "engine: optuna" in told["config"]
    names = [enqueue(client, sweep, lr=rate) for rate in (1, 2, 3)]
    seen, cursor = [], None
    while True:
        variables = {"sweep": sweep["name"], "first": 2, "cursor": cursor, "specs": []}
        page = client.graphql(RUNS, variables)["data"]["project"]["sweep"]["runs"]
        assert len(page["edges"]) <= 2
        seen += [edge["node"] for edge in page["edges"]]
        cursor = page["pageInfo"]["endCursor"]
        if not page["pageInfo"]["hasNextPage"]:
            break
    assert [run["name"] for run in seen] == names
    assert [json.loads(run["config"])["lr"]["value"] for run in seen] == [1, 2, 3]


def test_a_run_that_goes_on_later_has_not_ended_for_its_scheduler(client: Client) -> None:
    sweep = put(client, {**OPTUNA, "runyard": {"retries": {"program": 1}}})["sweep"]
    run = enqueue(client, sweep, lr=1)
    agent = Agent(client, 1)
    agent.end(agent.claim(), 75, "go-on")
    assert client.graphql(ONE, {"run": run})["data"]["project"]["run"]["state"] == "preempted"
    assert state_of(client, run) == "pending"
    agent.end(agent.claim(), 1)
    assert state_of(client, run) == "pending"
    agent.end(agent.claim(), 1)
    assert state_of(client, run) == "failed"


def test_the_cap_counts_what_finishes_and_ends_the_sweep(client: Client) -> None:
    sweep = put(client, {**OPTUNA, "run_cap": 1})["sweep"]
    bad, good, never = (enqueue(client, sweep, lr=rate) for rate in (1, 2, 3))
    agent = Agent(client, 1)
    failing = agent.claim()
    assert agent.claim()["do"] == "wait"  # No program begins beyond the cap.
    agent.end(failing, 1)
    agent.end(agent.claim())
    assert [state_of(client, run) for run in (bad, good, never)] == ["failed", "finished", "killed"]
    assert facts(client, sweep)["state"] == "FINISHED"
    assert agent.claim()["do"] == "exit"


def test_a_pruned_run_ends_whether_or_not_it_has_begun(client: Client) -> None:
    sweep = put(client, OPTUNA)["sweep"]
    begun, waiting = enqueue(client, sweep, lr=1), enqueue(client, sweep, lr=2)
    agent = Agent(client, 1)
    held = agent.claim()
    for run in watch(client, begun, waiting).values():
        assert client.graphql(STOP, {"id": run["id"]})["data"]["stopRun"]["success"] is True
    assert state_of(client, waiting) == "killed"
    agent.end(held, 143)
    assert state_of(client, begun) == "killed"
    assert agent.claim()["do"] == "wait"


def test_what_is_deleted_from_a_grid_is_the_schedulers_to_ask_for_again(client: Client) -> None:
    sweep = put(client, {**GRID, "scheduler": {"engine": "wandb"}})["sweep"]
    run = enqueue(client, sweep, lr=0.1, size=16)
    client.graphql(DELETE, {"id": watch(client, run)[run]["id"]})
    assert Agent(client, 1).claim()["do"] == "wait"


def test_its_log_ends_by_silence_and_has_not_crashed(
    client: Client, ada: Person, tracker: Tracker
) -> None:
    sweep = put(client, OPTUNA)["sweep"]
    log = facts(client, sweep)["controllerRunName"]
    for run in (log, "other-scheduler"):
        ada.log(run, entity="ada")
        assert ada.stream("ada", run) == 200
    asyncio.run(tracker.write(mark_silent, time.time() + 1))
    states = {name: run["state"] for name, run in watch(client, log, "other-scheduler").items()}
    assert states == {log: "finished", "other-scheduler": "crashed"}


def test_a_name_of_its_own(client: Client) -> None:
    sweep = put(client, OPTUNA)["sweep"]
    named = {"id": sweep["id"], "config": "{}", "displayName": "a/b"}
    run = client.graphql(ENQUEUE, named)["data"]["enqueueSweepRun"]["id"]
    assert watch(client, run)[run]["displayName"] == "a/b"


@pytest.mark.parametrize("state", ["FINISHED", "CANCELED"])
def test_a_sweep_that_has_ended_takes_no_more(client: Client, state: str) -> None:
    sweep = put(client, OPTUNA)["sweep"]
    waiting = enqueue(client, sweep, lr=1)
    client.graphql(UPSERT_SWEEP, {"id": sweep["id"], "state": state})
    assert state_of(client, waiting) == "killed"
    why = refusal(client, sweep)
    assert f"the sweep {sweep['name']} is {state.lower()}, and takes no more trials" in why
    assert f"wandb sweep --resume ada/birds/{sweep['name']}" in why


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ("{lr: 1", "config is not JSON"),
        ("[1]", "config is not JSON: it is not an object"),
        ("[" * 100_000, "config is not JSON"),
        (None, "config is missing"),
    ],
)
def test_a_config_that_is_none_is_refused(client: Client, config: Any, why: str) -> None:
    sweep = put(client, OPTUNA)["sweep"]
    assert why in refusal(client, sweep, config)
    assert Agent(client, 1).claim()["do"] == "wait"


def test_a_sweep_that_is_searched_here_takes_no_suggestions(client: Client) -> None:
    sweep = put(client)["sweep"]
    assert "draws its trials here" in refusal(client, sweep)


def test_nobody_elses_sweep(client: Client, bob: Person) -> None:
    sweep = put(client, OPTUNA)["sweep"]
    assert refusal(bob, sweep) == "there is no such sweep any more"


def test_a_key_for_runs_suggests_values_but_no_command_lines(client: Client, ada: Person) -> None:
    made = ada.post("/api/keys", {"kind": "shell", "label": "node1"}).json()["key"]
    shell = Person(client, "ada", made)
    values = put(client, OPTUNA)["sweep"]
    config = json.dumps({"lr": {"value": 1}})
    answer = shell.ask(ENQUEUE, id=values["id"], config=config)["data"]["enqueueSweepRun"]
    assert state_of(client, answer["id"]) == "pending"
    strange = json.dumps({"lr": {"value": "$(id)"}})
    refused = shell.ask(ENQUEUE, id=values["id"], config=strange)["errors"][0]["message"]
    assert '"$(id)" is not among the sweep\'s parameters and values' in refused
    tasks = [{"name": "one", "command_line": "true"}, {"name": "two", "command_line": "false"}]
    listed = {
        "method": "grid",
        "parameters": {"task": {"values": [0, 1]}},
        "controller": {"type": "local"},
        "runyard": {"tasks": tasks},
    }
    lines = put(client, listed)["sweep"]
    assert "this needs your own key" in refusal(shell, lines)
    assert "a list of command lines" in refusal(client, lines)
