"""Runs for the page: columns, what changed of them, groups, names and tags changed by hand."""

from __future__ import annotations

import gzip
import json
from typing import Any

from tests.server.asgi import Client
from tests.server.conftest import Upsert
from tests.server.persons import Person
from tests.server.test_charts import keys_of, log

RUNS = "/api/projects/ada/birds/runs"


def config(**values: Any) -> str:
    return json.dumps({name: {"value": value} for name, value in values.items()})


def test_runs_come_as_columns_the_newest_first(client: Client, upsert: Upsert) -> None:
    for number in range(3):
        upsert(name=f"run{number}", config=config(lr=10**-number, net={"depth": number}))
    found = client.get(RUNS + "?config=lr&config=net.depth&config=no").json()
    assert found["whole"] is True
    assert found["columns"]["id"] == ["run2", "run1", "run0"]
    assert found["config"] == {
        "lr": [0.01, 0.1, 1],
        "net.depth": [2, 1, 0],
        "no": [None, None, None],
    }
    assert found["columns"]["tags"] == [[], [], []]
    assert {len(column) for column in found["columns"].values()} == {3}


def test_odd_numbers_travel_as_text(client: Client, upsert: Upsert) -> None:
    upsert(name="run1", summaryMetrics='{"loss": NaN, "best": Infinity}')
    found = client.get(RUNS + "?summary=loss&summary=best").json()
    assert found["summary"] == {"loss": ["NaN"], "best": ["Infinity"]}


def test_what_has_not_changed_is_not_sent_again(client: Client, upsert: Upsert) -> None:
    upsert(name="run1")
    first = client.get(RUNS)
    tag = first.headers["etag"]
    again = client.request("GET", RUNS, headers={"if-none-match": tag})
    assert (again.status, again.body) == (304, b"")
    upsert(name="other", project="fish")
    assert client.request("GET", RUNS, headers={"if-none-match": tag}).status == 304
    upsert(name="run1", displayName="renamed")
    changed = client.request("GET", RUNS, headers={"if-none-match": tag})
    assert changed.status == 200
    assert changed.json()["columns"]["name"] == ["renamed"]


def test_only_what_changed_since_a_revision(client: Client, upsert: Upsert) -> None:
    for number in range(4):
        upsert(name=f"run{number}", config=config(lr=number))
    keys = keys_of(client)
    known = client.get(RUNS).json()["revision"]
    upsert(name="run1", summaryMetrics='{"loss": 2}')
    upsert(name="fresh")
    client.request("DELETE", f"/api/runs/{keys['run3']}")
    found = client.get(RUNS + f"?summary=loss&since={known}").json()
    assert found["whole"] is False
    assert found["columns"]["id"] == ["fresh", "run1"]
    assert found["summary"] == {"loss": [None, 2]}
    assert found["deleted"] == [keys["run3"]]
    nothing = client.get(RUNS + f"?since={found['revision']}").json()
    assert (nothing["columns"]["id"], nothing["deleted"]) == ([], [])


def test_a_heartbeat_is_no_change(client: Client, upsert: Upsert) -> None:
    upsert(name="run1")
    log(client, "run1", [{"_step": 0, "loss": 1}])
    tag = client.get(RUNS).headers["etag"]
    posted = client.post("/files/ada/birds/run1/file_stream", {"uploaded": []})
    assert posted.status == 200
    assert client.request("GET", RUNS, headers={"if-none-match": tag}).status == 304


def test_a_revision_of_another_server_gets_everything(client: Client, upsert: Upsert) -> None:
    upsert(name="run1")
    for since in (5, 2**52):
        found = client.get(RUNS + f"?since={since}").json()
        assert (found["whole"], found["columns"]["id"]) == (True, ["run1"])


def test_large_answers_are_compressed_for_who_can_read_that(client: Client, upsert: Upsert) -> None:
    for number in range(60):
        upsert(name=f"run{number}", notes="a note that is long enough to count" * 4)
    packed = client.request("GET", RUNS, headers={"accept-encoding": "gzip, br"})
    assert packed.headers["content-encoding"] == "gzip"
    assert json.loads(gzip.decompress(packed.body))["columns"]["id"][0] == "run59"
    assert "content-encoding" not in client.get(RUNS).headers


def test_somebody_elses_project_is_not_there(client: Client, upsert: Upsert, bob: Person) -> None:
    upsert(name="run1")
    for path in ("runs", "keys", "reports"):
        answer = client.get(f"/api/projects/ada/birds/{path}", key=bob.key)
        assert answer.status == 404, path
    listed = client.get("/api/projects", key=bob.key).json()
    assert listed["projects"] == []
    tagged = client.post("/api/projects/ada/birds/tags", {"runs": [1], "add": ["x"]}, key=bob.key)
    assert tagged.status == 404


def test_a_run_is_renamed_and_tagged_by_hand(client: Client, upsert: Upsert, bob: Person) -> None:
    upsert(name="run1")
    key = keys_of(client)["run1"]
    body = json.dumps({"name": "the good one", "notes": "kept", "tags": ["a", "a", "b"]}).encode()
    changed = client.request("PATCH", f"/api/runs/{key}", [body])
    assert changed.status == 200
    assert changed.json()["name"] == "the good one"
    assert changed.json()["tags"] == ["a", "b"]
    assert client.request("PATCH", f"/api/runs/{key}", [b'{"state": "x"}']).status == 400
    assert client.request("PATCH", f"/api/runs/{key}", [b'{"name": ""}']).status == 400
    assert client.request("PATCH", f"/api/runs/{key}", [body], key=bob.key).status == 404


def test_many_runs_are_tagged_at_once(client: Client, upsert: Upsert) -> None:
    for number in range(3):
        upsert(name=f"run{number}", tags=["old"])
    upsert(name="other", project="fish")
    keys = keys_of(client)
    told = client.post(
        "/api/projects/ada/birds/tags",
        {"runs": [*keys.values(), 9999], "add": ["good"], "remove": ["old"]},
    )
    assert told.json() == {"changed": 3}
    assert client.get(RUNS).json()["columns"]["tags"] == [["good"]] * 3


def test_many_runs_are_renamed_at_once(client: Client, upsert: Upsert) -> None:
    for number in range(3):
        upsert(name=f"run{number}")
    upsert(name="other", project="fish")
    keys = [*keys_of(client).values()]
    path = "/api/projects/ada/birds/rename"
    strangers = [9999, 1 + max(keys)]
    names = ["c", "b", "a", "no", "no"]
    assert client.post(path, {"runs": keys + strangers, "names": names}).json() == {"changed": 3}
    assert client.get(RUNS).json()["columns"]["name"] == ["c", "b", "a"]
    for wrong in ({"runs": keys, "names": ["a"]}, {"runs": keys[:1], "names": [""]}):
        assert client.post(path, wrong).status == 400


def test_runs_that_have_media_of_a_name(client: Client, upsert: Upsert) -> None:
    image = {"_type": "image-file", "path": "media/x.png"}
    summaries = [{"a": image}, {"loss": 1, "_type": "no"}, {"a": image, "deep": {"b": image}}, {}]
    for number, summary in enumerate(summaries):
        upsert(name=f"run{number}", summaryMetrics=json.dumps(summary))
    upsert(name="other", project="fish", summaryMetrics=json.dumps({"a": image}))
    keys = keys_of(client)
    path, order = "/api/projects/ada/birds/media", [keys[f"run{number}"] for number in (2, 3, 0, 1)]
    told = client.post(path, {"runs": [9999, *order]}).json()
    assert told == {"runs": {"a": [keys["run2"], keys["run0"]], "deep.b": [keys["run2"]]}}
    assert client.post(path, {"runs": list(range(1001))}).status == 400


def test_groups_by_fields_and_by_everything_but_the_seed(client: Client, upsert: Upsert) -> None:
    for number in range(6):
        upsert(
            name=f"run{number}",
            config=config(lr=[0.1, 0.01][number % 2], seed=number, net={"width": 8}),
        )
    keys = keys_of(client)
    even = sorted(keys[f"run{number}"] for number in (0, 2, 4))
    by = client.post("/api/projects/ada/birds/groups", {"by": ["config.lr", "state"]}).json()
    assert sorted(len(group["runs"]) for group in by["groups"]) == [3, 3]
    groups = {group["label"]: sorted(group["runs"]) for group in by["groups"]}
    assert groups["lr: 0.1, state: running"] == even
    apart = client.post("/api/projects/ada/birds/groups", {"except": ["config.seed"]}).json()
    assert {group["label"]: sorted(group["runs"]) for group in apart["groups"]}["lr: 0.1"] == even
    some = client.post("/api/projects/ada/birds/groups", {"by": ["config.seed"], "runs": even})
    assert len(some.json()["groups"]) == 3
    assert client.post("/api/projects/ada/birds/groups", {}).status == 400
    assert client.post("/api/projects/ada/birds/groups", {"by": ["nonsense"]}).status == 400


def test_the_names_that_runs_have_anything_under(client: Client, upsert: Upsert) -> None:
    upsert(name="run1", config=config(lr=0.1, opt="adam", net={"depth": 2}))
    upsert(name="run2", config=config(lr=0.2, opt="adam"))
    log(client, "run1", [{"_step": 0, "train": {"loss": 1.5}, "note": "text"}])
    log(client, "run1", [{"system.cpu": 3}], file="wandb-events.jsonl")
    url = "/api/projects/ada/birds/keys"
    found = client.get(url).json()
    assert {one["name"]: (one["kind"], one["varies"]) for one in found["config"]} == {
        "lr": ("number", True),
        "opt": ("text", False),
        "net.depth": ("number", False),
    }
    assert found["metrics"] == ["train.loss"]
    assert found["events"] == ["system.cpu"]
    # It is remembered, and brought up to date.
    tag = client.get(url).headers["etag"]
    assert client.request("GET", url, headers={"if-none-match": tag}).status == 304
    picture = {"_type": "image-file", "path": "media/a.png"}
    upsert(name="run2", summaryMetrics=json.dumps({"seen": picture, "val": 3}))
    log(client, "run2", [{"_step": 0, "val": 3}])
    found = client.get(url).json()
    assert found["metrics"] == ["train.loss", "val"]
    assert found["media"] == [{"name": "seen", "type": "image-file"}]
    client.request("DELETE", f"/api/runs/{keys_of(client)['run1']}")
    assert client.get(url).json()["metrics"] == ["val"]


def test_projects_with_what_goes_on_in_them(client: Client, upsert: Upsert) -> None:
    upsert(name="run1", project="fish")
    upsert(name="run1")
    upsert(name="run2")
    found = client.get("/api/projects").json()["projects"]
    assert [(one["entity"], one["name"], one["runs"]) for one in found] == [
        ("ada", "birds", 2),
        ("ada", "fish", 1),
    ]
    assert found[0]["activity"] == [0] * 29 + [2]
    assert found[0]["counts"] == {"running": 2}
