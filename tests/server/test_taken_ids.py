"""A run id that somebody else has: no way by which clients write leads to what is theirs."""

from __future__ import annotations

from typing import Any

import pytest

from runyard.home import Home
from tests.server.artifact_logger import CREATE
from tests.server.persons import Person

RESUME = """query RunResumeStatus($entity: String, $project: String, $name: String!) {
  model(name: $project, entityName: $entity) {
    bucket(name: $name) { id name summaryMetrics historyLineCount eventsLineCount } } }"""
FILES = """mutation CreateRunFiles($entity: String, $project: String!, $name: String!) {
  createRunFiles(input: {entityName: $entity, projectName: $project, runName: $name,
    files: ["notes.txt"]}) { runID files { uploadUrl } } }"""
REWIND = """mutation RewindRun($entity: String, $project: String!, $name: String!) {
  rewindRun(input: {entityName: $entity, projectName: $project, runName: $name, metricName: "_step",
    metricValue: 0}) { rewoundRun { id } } }"""
ALERT = """mutation A($entity: String, $project: String!, $name: String!) {
  notifyScriptableRunAlert(input: {entityName: $entity, projectName: $project, runName: $name,
    title: "t", text: "t"}) { success } }"""
USE = """mutation UseArtifact($entity: String, $project: String!, $name: String!, $artifact: ID!) {
  useArtifact(input: {entityName: $entity, projectName: $project, runName: $name,
    artifactID: $artifact}) { artifact { id } } }"""
USED = """query Used($name: String!) { project(name: "birds") { run(name: $name) {
  inputArtifacts { totalCount edges { node { id } } } } } }"""


def rows(*losses: float) -> dict[str, Any]:
    lines = [f'{{"_step": {step}, "loss": {loss}}}' for step, loss in enumerate(losses)]
    return {"files": {"wandb-history.jsonl": {"offset": 0, "content": lines}}}


@pytest.fixture
def taken(bob: Person) -> str:
    """The id that clients hold of bob's run `taken`."""
    made = bob.log("taken", displayName="bob's", config='{"lr": {"value": 1}}')
    assert bob.post("/files/bob/birds/taken/file_stream", rows(0.5, 0.25)).status == 200
    opaque: str = made["data"]["upsertBucket"]["bucket"]["id"]
    return opaque


def as_bob_sees_it(bob: Person) -> dict[str, Any]:
    shown: dict[str, Any] = bob.get("/api/run", name="bob/birds/taken").json()
    return shown


@pytest.mark.usefixtures("taken")
def test_in_ones_own_entity_it_is_a_run_of_ones_own(bob: Person, eve: Person, home: Home) -> None:
    before = as_bob_sees_it(bob)
    where = {"project": "birds", "name": "taken"}
    asked = eve.ask(RESUME, **where)["data"]["model"]
    assert asked["bucket"] is None  # It does not go on where bob's stopped.
    made = eve.log("taken", config='{"lr": {"value": 2}}')["data"]["upsertBucket"]
    assert made["inserted"]
    assert made["bucket"]["project"]["entity"]["name"] == "eve"
    assert eve.post("/files/eve/birds/taken/file_stream", rows(9.0)).status == 200
    address = eve.ask(FILES, **where)["data"]["createRunFiles"]["files"][0]["uploadUrl"]
    assert eve.client.put(address, b"eve's").status == 200
    assert eve.get("/files/eve/birds/taken/notes.txt").text == "eve's"
    assert bob.get("/files/bob/birds/taken/notes.txt").status == 404
    assert eve.ask(RESUME, **where)["data"]["model"]["bucket"]["historyLineCount"] == 1
    assert as_bob_sees_it(bob) == before
    assert before["steps"] == 2


@pytest.mark.parametrize("document", [FILES, REWIND, ALERT])
@pytest.mark.usefixtures("taken")
def test_in_somebody_elses_a_run_that_is_there_is_refused_as_one_that_is_not(
    bob: Person, eve: Person, document: str
) -> None:
    before = as_bob_sees_it(bob)
    answers = {
        name: eve.ask(document, entity="bob", project="birds", name=name)["errors"][0]["message"]
        for name in ("taken", "free")
    }
    assert answers["taken"].replace("taken", "free") == answers["free"]
    assert as_bob_sees_it(bob) == before


@pytest.mark.usefixtures("taken")
def test_starting_and_streaming_in_somebody_elses_entity(bob: Person, eve: Person) -> None:
    before = as_bob_sees_it(bob)
    for name in ("taken", "free"):
        refused = eve.log(name, "bob", displayName="mine now")
        assert refused["errors"][0]["message"].startswith("'bob' is not an entity that 'eve' may")
        assert not (refused.get("data") or {}).get("upsertBucket")
        assert eve.post(f"/files/bob/birds/{name}/file_stream", rows(9.0)).status == 403
        asked = eve.ask(RESUME, entity="bob", project="birds", name=name)
        assert asked["data"]["model"] is None
    assert as_bob_sees_it(bob) == before
    assert bob.runs() == {"taken"}


def test_by_the_id_that_its_client_holds(bob: Person, eve: Person, taken: str) -> None:
    before = as_bob_sees_it(bob)
    for name, entity in (("taken", "eve"), ("other", None), (None, None)):
        refused = eve.ask(
            "mutation U($id: String, $name: String, $entity: String) { upsertBucket(input: "
            '{id: $id, name: $name, entityName: $entity, modelName: "birds", displayName: "mine"})'
            " { bucket { id displayName } } }",
            id=taken,
            name=name,
            entity=entity,
        )
        assert refused["errors"][0]["message"] == "there is no such run any more"
    assert as_bob_sees_it(bob) == before
    assert eve.runs() == set()


@pytest.mark.usefixtures("taken")
def test_what_one_uses_is_not_noted_in_somebody_elses_run(bob: Person, eve: Person) -> None:
    given = {
        "projectName": "birds",
        "artifactTypeName": "dataset",
        "artifactCollectionName": "eggs",
        "digest": "d1",
        "digestAlgorithm": "MANIFEST_MD5",
    }
    made = eve.ask(CREATE, input=given)["data"]["createArtifact"]["artifact"]["id"]
    where = {"entity": "bob", "project": "birds", "artifact": made}
    answers = [eve.ask(USE, name=name, **where) for name in ("taken", "free")]
    assert all("errors" in answer for answer in answers)
    seen = bob.ask(USED, name="taken")["data"]["project"]["run"]["inputArtifacts"]
    assert seen == {"totalCount": 0, "edges": []}


def test_a_reader_who_looks_does_not_make_the_next_start_a_resumption(
    ada: Person, bob: Person, taken: str
) -> None:
    """Up to 0.17, whoever asked where a run stops is about to go on there. The admin is not."""
    bob.post("/files/bob/birds/taken/file_stream", {"complete": True, "exitcode": 0})
    assert ada.ask(RESUME, entity="bob", project="birds", name="taken")["data"]["model"]["bucket"]
    began = '{"_wandb": {"value": {"start_time": 1700000000, "t": {"3": [13]}}}}'
    bob.log("taken", config=began)
    assert as_bob_sees_it(bob)["steps"] == 0  # An id used again begins anew.
