"""What `wandb.Api()` asks of runs: lists, history, files, console, projects."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import pytest

from runyard.server.people.accounts import Accounts
from tests.server.asgi import Client
from tests.server.conftest import Upsert

STREAM = "/files/ada/birds/{}/file_stream"
RUN = 'query($keys: [JSONString!]) { project(name: "birds") { run(name: "run1") { %s } } }'


def send(client: Client, run: str, **files: tuple[int, list[str]]) -> None:
    names = {"history": "wandb-history.jsonl", "events": "wandb-events.jsonl"}
    body = {
        names.get(name, "output.log"): {"offset": offset, "content": lines}
        for name, (offset, lines) in files.items()
    }
    assert client.post(STREAM.format(run), {"files": body}).status == 200


def rows(*steps: int, **more: Any) -> list[str]:
    return [json.dumps({"_step": step, "loss": 1 / (step + 1), **more}) for step in steps]


def ask(client: Client, fields: str, **variables: Any) -> Any:
    answer = client.graphql(RUN % fields, variables)
    assert "errors" not in answer, answer
    return answer["data"]["project"]["run"]


def refusal(client: Client, query: str, **variables: Any) -> str:
    message: str = client.graphql(query, variables)["errors"][0]["message"]
    return message


def upload(client: Client, name: str, content: bytes, run: str = "run1") -> None:
    made = client.graphql(
        'mutation($run: String!, $names: [String!]!) { createRunFiles(input: {projectName: "birds",'
        " runName: $run, files: $names}) { files { uploadUrl } } }",
        {"run": run, "names": [name]},
    )
    url = made["data"]["createRunFiles"]["files"][0]["uploadUrl"]
    assert client.put(url, content).status == 200


LIST = """query($filters: JSONString, $order: String, $first: Int, $after: String) {
  project(name: "birds") { internalId readOnly runCount(filters: $filters)
    runs(filters: $filters, order: $order, first: $first, after: $after) {
      edges { node { name projectId historyLineCount state } cursor }
      pageInfo { endCursor hasNextPage } } } }"""


def test_runs_are_listed_filtered_and_paged(client: Client, upsert: Upsert) -> None:
    for number in range(5):
        upsert(
            name=f"run{number}",
            config=json.dumps({"lr": {"value": number / 10}}),
            summaryMetrics=json.dumps({"acc": -number}),
        )
    send(client, "run3", history=(0, rows(0, 1)))
    given = {
        "filters": json.dumps({"config.lr": {"$gte": 0.1}}),
        "order": "+summary_metrics.acc",
        "first": 3,
    }
    page = client.graphql(LIST, given)["data"]["project"]
    assert (page["runCount"], page["readOnly"]) == (4, False)
    names = [edge["node"]["name"] for edge in page["runs"]["edges"]]
    assert names == ["run4", "run3", "run2"]
    assert page["runs"]["edges"][1]["node"]["historyLineCount"] == 2
    assert page["runs"]["edges"][0]["node"]["projectId"] == page["internalId"]
    assert page["runs"]["pageInfo"]["hasNextPage"]

    after = page["runs"]["pageInfo"]["endCursor"]
    page = client.graphql(LIST, {**given, "after": after})["data"]["project"]["runs"]
    assert [edge["node"]["name"] for edge in page["edges"]] == ["run1"]
    assert not page["pageInfo"]["hasNextPage"]


def test_a_list_follows_what_changed(client: Client, upsert: Upsert) -> None:
    """Values are remembered between questions; a newer one is not missed."""
    made = upsert(name="run1", config='{"lr": {"value": 1}}', summaryMetrics='{"acc": 1}')

    def found(filters: object) -> int:
        project = client.graphql(LIST, {"filters": json.dumps(filters)})["data"]["project"]
        count: int = project["runCount"]
        return count

    assert (found({"config.lr": 1}), found({"summary_metrics.acc": 1})) == (1, 1)
    upsert(id=made["bucket"]["id"], config='{"lr": {"value": 2}}', host=None)
    summary = {"wandb-summary.json": {"offset": 0, "content": ['{"acc": 2}']}}
    client.post(STREAM.format("run1"), {"files": summary})
    assert (found({"config.lr": 1}), found({"summary_metrics.acc": 1})) == (0, 0)
    assert (found({"config.lr": 2}), found({"summary_metrics.acc": 2})) == (1, 1)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"filters": '{"lr": 1}'}, "no field 'lr'"),
        ({"filters": "nonsense"}, "not JSON"),
        ({"order": "-whatever"}, "the order is not known"),
        ({"after": "x"}, "not a cursor"),
        ({"first": -1}, "first is not a number"),
    ],
)
def test_a_bad_question_is_answered_in_words(
    client: Client, upsert: Upsert, given: dict[str, Any], says: str
) -> None:
    upsert(name="run1")
    assert says in refusal(client, LIST, **given)


def test_what_is_not_there_is_null(client: Client, upsert: Upsert) -> None:
    assert client.graphql(LIST)["data"]["project"] is None
    upsert(name="run1")
    found = client.graphql('{ project(name: "birds") { run(name: "no") { id } sweep { id } } }')
    assert found["data"]["project"] == {"run": None, "sweep": None}


def test_projects_are_listed_and_made(client: Client, upsert: Upsert) -> None:
    upsert(name="run1")
    make = """mutation($input: UpsertModelInput!) { upsertModel(input: $input) {
      project { id name entityName internalId } inserted } }"""
    made = client.graphql(make, {"input": {"name": "fish", "entityName": "ada"}})
    assert made["data"]["upsertModel"]["inserted"] is True
    again = client.graphql(make, {"input": {"name": "fish", "entityName": "ada"}})
    assert again["data"]["upsertModel"]["inserted"] is False
    assert "cannot be a project" in refusal(client, make, input={"name": "a/b"})

    listed = """query($after: String) { models(entityName: "ada", first: 1, after: $after) {
      edges { node { __typename name createdAt isBenchmark user { id } } }
      pageInfo { __typename endCursor hasNextPage } } }"""
    first = client.graphql(listed)["data"]["models"]
    assert first["edges"][0]["node"]["name"] == "birds"
    assert first["pageInfo"]["__typename"] == "PageInfo"
    assert first["pageInfo"]["hasNextPage"]
    second = client.graphql(listed, {"after": first["pageInfo"]["endCursor"]})["data"]["models"]
    assert second["edges"][0]["node"]["name"] == "fish"
    assert not second["pageInfo"]["hasNextPage"]

    number = made["data"]["upsertModel"]["project"]["internalId"]
    by_number = client.graphql(
        "query($id: ID) { project(internalId: $id) { name } }", {"id": number}
    )
    assert by_number["data"]["project"]["name"] == "fish"


def test_history_is_sampled_evenly_with_both_ends(client: Client, upsert: Upsert) -> None:
    upsert(name="run1")
    send(client, "run1", history=(0, rows(*range(700))))
    send(client, "run1", history=(700, rows(*range(700, 1001))))
    sampled = [json.loads(line) for line in ask(client, "history(samples: 11)")["history"]]
    assert [row["_step"] for row in sampled] == list(range(0, 1001, 100))
    assert sampled[-1]["loss"] == 1 / 1001
    assert len(ask(client, "history")["history"]) == 500
    assert ask(client, "history(samples: 1)")["history"] == [json.dumps(json.loads(rows(1000)[0]))]


def test_windows_of_steps(client: Client, upsert: Upsert) -> None:
    """`history` ends before its last step, `sampledHistory` with it."""
    upsert(name="run1")
    send(client, "run1", history=(0, rows(0, 10, 20, 30, 40)))
    whole = ask(client, "history(minStep: 10, maxStep: 30, samples: 100)")["history"]
    assert [json.loads(line)["_step"] for line in whole] == [10, 20]

    def steps(**spec: Any) -> list[int]:
        given = [json.dumps({"keys": ["_step"], **spec})]
        (found,) = ask(client, "sampledHistory(specs: $keys)", keys=given)["sampledHistory"]
        return [row["_step"] for row in found]

    assert steps(minStep=10, maxStep=30, samples=100) == [10, 20, 30]
    # An old client's page reaches one step into the next one.
    assert steps(minStep=0, maxStep=10, samples=10) == [0]
    assert steps(samples=2) == [0, 40]
    assert steps() == [0, 10, 20, 30, 40]


def test_rows_that_have_all_keys_and_nested_ones_by_dots(client: Client, upsert: Upsert) -> None:
    upsert(name="run1")
    lines = [
        '{"_step": 0, "a": 1, "deep": {"er": {"x": 5}}}',
        '{"_step": 1, "a": 2}',
        '{"_step": 2, "a": NaN, "deep": {"er": {"x": true}}, "b.c/d": "text"}',
        '{"_step": 3, "a": Infinity, "deep": {"er": {"x": null}}, "b.c/d": [1]}',
    ]
    send(client, "run1", history=(0, lines))
    # Another run has a key of the same dotted name that is not nested.
    upsert(name="run2")
    send(client, "run2", history=(0, ['{"deep.er.x": 1}']))

    specs = [
        json.dumps({"keys": ["_step", "a", "deep.er.x"], "samples": 10}),
        json.dumps({"keys": ["b.c/d"]}),
        json.dumps({"keys": ["a", "never"]}),
    ]
    found = ask(client, "sampledHistory(specs: $keys)", keys=specs)["sampledHistory"]
    assert found == [
        [
            {"_step": 0, "a": 1, "deep.er.x": 5},
            {"_step": 2, "a": "NaN", "deep.er.x": True},
            {"_step": 3, "a": "Infinity", "deep.er.x": None},
        ],
        [{"b.c/d": "text"}, {"b.c/d": [1]}],
        [],
    ]
    assert "NaN" in ask(client, "history")["history"][2]


def test_history_keys_in_the_known_shape(client: Client, upsert: Upsert) -> None:
    upsert(name="run1")
    assert ask(client, "historyKeys parquetHistory { parquetUrls liveData }") == {
        "historyKeys": None,
        "parquetHistory": {"parquetUrls": [], "liveData": []},
    }
    lines = [
        '{"_step": 5, "up": 1.5, "text": "a", "deep": {"er": 1}}',
        '{"_step": 7, "up": 2.5, "text": {"_type": "histogram", "bins": []}, "deep": {"er": 0}}',
    ]
    send(client, "run1", history=(0, lines))
    found = ask(client, "historyKeys parquetHistory(liveKeys: []) { parquetUrls liveData }")
    assert found["parquetHistory"] == {"parquetUrls": [], "liveData": [{"_step": 5}]}
    keys = found["historyKeys"]
    assert keys["lastStep"] == 7
    assert keys["keys"]["_step"] == {
        "typeCounts": [{"type": "number", "count": 2}],
        "monotonic": True,
        "previousValue": 7,
    }
    assert keys["keys"]["deep.er"]["monotonic"] is False
    assert keys["keys"]["text"]["typeCounts"] == [
        {"type": "string", "count": 1},
        {"type": "histogram", "count": 1},
    ]


def test_system_metrics_are_the_last_ones(client: Client, upsert: Upsert) -> None:
    upsert(name="run1")
    assert ask(client, "systemMetrics")["systemMetrics"] == "{}"
    send(client, "run1", events=(0, ['{"system.cpu": 1, "_wandb": true}', '{"system.cpu": 2}']))
    found = ask(client, "systemMetrics events(samples: 5) eventsLineCount")
    assert json.loads(found["systemMetrics"]) == {"system.cpu": 2}
    assert [json.loads(line)["system.cpu"] for line in found["events"]] == [1, 2]
    assert found["eventsLineCount"] == 2


LOGS = "logLineCount logLines(%s) { edges { node { number timestamp level label line } } "
LOGS += "pageInfo { endCursor hasNextPage } }"


def test_the_console_line_by_line(client: Client, upsert: Upsert) -> None:
    upsert(name="run1")
    lines = [f"2026-11-15T01:13:55.788361 line {number}" for number in range(4)]
    lines.append("ERROR 2026-11-15T01:13:56.000000 oh")
    send(client, "run1", output=(0, lines))
    page = ask(client, LOGS % "first: 3")
    assert page["logLineCount"] == 5
    assert [edge["node"]["line"] for edge in page["logLines"]["edges"]] == [
        "line 0",
        "line 1",
        "line 2",
    ]
    cursor = page["logLines"]["pageInfo"]["endCursor"]
    rest = ask(client, LOGS % f'first: 3, after: "{cursor}"')["logLines"]
    assert [edge["node"]["number"] for edge in rest["edges"]] == [3, 4]
    assert rest["edges"][1]["node"] == {
        "number": 4,
        "timestamp": "2026-11-15T01:13:56.000000",
        "level": "error",
        "label": "",
        "line": "oh",
    }
    assert not rest["pageInfo"]["hasNextPage"]
    tail = ask(client, LOGS % "last: 2")["logLines"]
    assert [edge["node"]["line"] for edge in tail["edges"]] == ["line 3", "oh"]


def test_the_console_of_a_program_that_knows_nothing_of_wandb(
    client: Client, upsert: Upsert
) -> None:
    client.post("/api/runs", {"id": "run1", "project": "birds", "command": ["x"]})
    printed = "one\n50 %\r100 %\nthr\u00e9e\nno end".encode()
    for number, pieces in ((1, (printed[:14], printed[14:])), (2, (b"\nagain\n",))):
        begun = {"token": f"t{number}", "host": "node1", "pid": 1}
        assert client.post("/api/runs/1/attempts", begun).json()["number"] == number
        offset = 0
        for piece in pieces:
            path = f"/api/runs/1/attempts/{number}/console?offset={offset}"
            assert client.post(path, piece).status == 200
            offset += len(piece)
    page = ask(client, LOGS % "first: 10")
    shown = [edge["node"]["line"] for edge in page["logLines"]["edges"]]
    assert shown == ["one", "100 %", "thrée", "no end", "again"]
    assert page["logLineCount"] == 5
    assert client.get("/api/runs/1/lines/output").json()["lines"] == shown
    upsert(name="run1")
    send(client, "run1", output=(0, ["2026-11-15T01:13:55.788361 from the client"]))
    page = ask(client, LOGS % "first: 10")
    assert [edge["node"]["line"] for edge in page["logLines"]["edges"]] == ["from the client"]


FILES = "fileCount files(%s) { edges { node { id name url directUrl sizeBytes mimetype md5 } } "
FILES += "pageInfo { endCursor hasNextPage } }"


def _files(client: Client, given: str = "first: 50") -> list[dict[str, Any]]:
    return [edge["node"] for edge in ask(client, FILES % given)["files"]["edges"]]


def test_files_are_listed_downloaded_and_deleted(client: Client, upsert: Upsert) -> None:
    upsert(name="run1")
    for name in ("a.json", "b c?.txt", "media/x.png"):
        upload(client, name, name.encode())
    assert [file["name"] for file in _files(client)] == ["a.json", "b c?.txt", "media/x.png"]
    first, second, _ = _files(client)
    assert first["sizeBytes"] == 6
    assert first["mimetype"] == "application/json"
    assert first["md5"] == base64.b64encode(hashlib.md5(b"a.json").digest()).decode()
    path = second["url"].removeprefix("http://yard.example:8123")
    assert client.get(path).body == b"b c?.txt"
    assert client.get(path, key=None).status == 401
    part = client.request("GET", path, headers={"range": "bytes=2-3"})
    assert (part.status, part.body) == (206, b"c?")

    assert [file["name"] for file in _files(client, 'pattern: "%.JSON"')] == ["a.json"]
    assert [file["name"] for file in _files(client, 'pattern: "media/_.%"')] == ["media/x.png"]
    assert [file["name"] for file in _files(client, 'names: ["a.json", "no"]')] == ["a.json"]
    assert [file["name"] for file in _files(client, 'names: ["./a.json"]')] == ["a.json"]
    page = ask(client, FILES % "first: 2")
    assert (page["fileCount"], page["files"]["pageInfo"]["hasNextPage"]) == (3, True)
    cursor = page["files"]["pageInfo"]["endCursor"]
    assert [file["name"] for file in _files(client, f'after: "{cursor}"')] == ["media/x.png"]

    delete = "mutation($files: [ID!]!) { deleteFiles(input: {files: $files}) { success } }"
    done = client.graphql(delete, {"files": [second["id"]]})
    assert done["data"]["deleteFiles"]["success"] is True
    assert [file["name"] for file in _files(client)] == ["a.json", "media/x.png"]
    assert client.get(path).status == 404
    assert "not the id of a file" in refusal(client, delete, files=["nonsense"])


def test_uploaded_files_need_no_second_word(client: Client, upsert: Upsert) -> None:
    upsert(name="run1")
    mark = """mutation { markRunFilesUploaded(input: {entityName: "ada", projectName: "birds",
      runName: "run1", files: ["a"]}) { success } }"""
    assert client.graphql(mark)["data"]["markRunFilesUploaded"]["success"] is True


def test_a_finished_run_is_changed_but_not_revived(client: Client, upsert: Upsert) -> None:
    made = upsert(name="run1", config='{"a": {"value": 1}}', tags=["x"], groupName="g")
    client.post(STREAM.format("run1"), {"complete": True, "exitcode": 0})
    changed = upsert(
        id=made["bucket"]["id"], name=None, host=None, displayName="new name", notes="", tags=[],
        config='{"a": {"value": 2, "desc": null}}', summaryMetrics='{"acc": 1}', groupName="h",
    )  # fmt: skip
    assert changed["inserted"] is False
    assert changed["bucket"]["displayName"] == "new name"
    assert changed["bucket"]["group"] == "h"
    assert json.loads(changed["bucket"]["summaryMetrics"]) == {"acc": 1}
    assert (changed["bucket"]["state"], changed["bucket"]["tags"]) == ("finished", [])


def test_what_is_somebody_elses_is_not_changed(
    client: Client, upsert: Upsert, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every change asks at one place."""
    key = upsert(name="run1")["bucket"]["id"]
    upload(client, "a.txt", b"a")
    (file,) = _files(client)
    monkeypatch.setattr(Accounts, "may_write", lambda _self, _caller, entity: entity != "ada")
    for mutation in (
        f'upsertBucket(input: {{id: "{key}", notes: "mine now"}}) {{ bucket {{ id }} }}',
        'upsertBucket(input: {name: "run1", modelName: "birds"}) { bucket { id } }',
        f'deleteRun(input: {{id: "{key}"}}) {{ clientMutationId }}',
        f'stopRun(input: {{id: "{key}"}}) {{ success }}',
        f'updateRunState(input: {{id: "{key}", state: "failed"}}) {{ success }}',
        f'deleteFiles(input: {{files: ["{file["id"]}"]}}) {{ success }}',
        'upsertModel(input: {name: "mine", entityName: "ada"}) { inserted }',
        'createRunFiles(input: {projectName: "birds", runName: "run1", files: ["x"]}) { runID }',
    ):
        said = refusal(client, f"mutation {{ {mutation} }}")
        assert any(words in said for words in ("may not change", "may write to", "no run"))
    assert client.request("DELETE", "/api/runs/1").status == 403
    assert client.post("/api/runs/1/stop", {}).status == 403
    assert ask(client, "notes state fileCount") == {
        "notes": None, "state": "running", "fileCount": 1,
    }  # fmt: skip


def test_a_state_is_changed_from_outside_only_as_far_as_w_and_b_allows(
    client: Client, upsert: Upsert
) -> None:
    key = upsert(name="run1")["bucket"]["id"]
    change = """mutation($id: ID!, $state: String!) {
      updateRunState(input: {id: $id, state: $state}) { success } }"""
    assert client.graphql(change, {"id": key, "state": "failed"})["data"]["updateRunState"][
        "success"
    ]
    assert ask(client, "state")["state"] == "failed"
    assert "cannot go from failed to 'finished'" in refusal(
        client, change, id=key, state="finished"
    )
