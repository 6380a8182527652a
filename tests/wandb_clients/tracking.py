"""Flows of a run's own life: what it logs, saves, and how it ends."""

from __future__ import annotations

from typing import Any, cast

from tests.wandb_clients.client import Client, wait_until
from tests.wandb_clients.matrix import flow


@flow("config, log, nested keys, define_metric, summary, console, system metrics, tags")
def plain(client: Client) -> None:
    client.run("plain")
    run = client.only_run()
    assert run["state"] == "finished"
    assert run["exit_code"] == 0
    assert run["config"] == {
        "lr": 0.1, "layers": [64, 32], "opt": {"name": "adam"}, "nothing": None, "later": "yes",
    }  # fmt: skip
    assert run["tags"] == ["first", "second", "third"]
    texts = ("a note", "a group", "train", "a name")
    assert (run["notes"], run["group"], run["job_type"], run["name"]) == texts
    assert run["steps"] == 22

    summary = run["summary"]
    assert summary["accuracy"] == {"max": 0.9}
    assert summary["best"] == 0.05
    assert summary["nested"] == {"value": 1}
    assert summary["odd"] == "NaN"
    assert summary["big"] == "Infinity"

    series = client.series(run["id"])
    assert series["loss"]["steps"] == list(range(0, 20, 2))
    assert series["loss"]["values"] == [1 / (step + 1) for step in range(10)]
    assert series["deep.er.still"]["values"] == list(range(10))
    assert series["a/b.c"]["minimum"] == -9
    assert series["apart"]["steps"] == series["together"]["steps"] == [20]
    assert series["big"]["steps"] == [50]

    console = client.console(run["id"])
    assert "hello from stdout\n" in console
    assert "hello from stderr\n" in console
    asked = client.bucket(run["id"], 'eventsLineCount eventsTail wandbConfig(keys: ["m", "t"])')
    assert asked["eventsLineCount"] > 0
    assert "system" in asked["eventsTail"]
    assert "val/" in asked["wandbConfig"]
    uploaded = {"config.yaml", "wandb-metadata.json", "wandb-summary.json", "requirements.txt"}
    assert uploaded <= set(run["files"])


@flow("exit code, exception, SIGINT")
def endings(client: Client) -> None:
    with (
        client.start("ending", "interrupt") as interrupted,
        client.start("ending", "code") as coded,
        client.start("ending", "exception") as raised,
    ):
        interrupted.wait_for("ready")
        interrupted.interrupt()
        coded.end(3)
        raised.end(1)
        # Versions differ in whether Python ends with 1, with 130 or by the signal itself.
        interrupted.end(None)
    ends = {name: client.stored(name) for name in ("code", "exception", "interrupt")}
    assert {name: run["state"] for name, run in ends.items()} == dict.fromkeys(ends, "failed")
    assert [run["exit_code"] for run in ends.values()] == [3, 1, 255]
    assert [run["steps"] for run in ends.values()] == [5, 5, 5]
    assert "the loss went through the roof" in client.console("exception")


@flow("images, histograms, sounds, videos, HTML, point clouds")
def media(client: Client) -> None:
    client.run("media")
    run = client.only_run()
    assert run["steps"] == 2
    image = run["summary"]["image"]
    assert (image["_type"], image["width"], image["height"]) == ("image-file", 32, 24)
    assert client.file(run["id"], image["path"])[:4] == b"\x89PNG"
    assert len(client.file(run["id"], image["path"])) == image["size"]
    assert run["summary"]["images"]["_type"] == "images/separated"
    assert run["summary"]["images"]["count"] == 3
    assert run["summary"]["histogram"]["_type"] == "histogram"
    assert b"step 1" in client.file(run["id"], run["summary"]["page"]["path"])
    kinds = [name.split("/")[1] for name in run["files"] if name.startswith("media/")]
    counts = {kind: kinds.count(kind) for kind in kinds}
    # The same content is sent once by newer clients, and once a step by older ones.
    assert counts.pop("audio") in (1, 2)
    assert counts.pop("videos") in (1, 2)
    assert counts == {"images": 8, "html": 2, "object3D": 2}
    assert client.file(run["id"], run["summary"]["sound"]["path"])[:4] == b"RIFF"
    assert b"any bytes" in client.file(run["id"], run["summary"]["film"]["path"])


@flow("tables and charts")
def tables(client: Client) -> None:
    client.run("tables")
    run = client.only_run()
    table = run["summary"]["predictions"]
    assert (table["_type"], table["nrows"], table["ncols"]) == ("table-file", 2, 2)
    assert b"0.25" in client.file(run["id"], table["path"])
    assert "score" in str(client.bucket(run["id"], "config")["config"])


@flow("wandb.save: now, live, end")
def saving(client: Client) -> None:
    client.run("saving")
    run = client.only_run()

    def content(name: str) -> bytes:
        return client.file(run["id"], name)

    assert content("checkpoints/one.bin") == bytes(range(256)) * 1000
    # Older clients leave out files without content.
    assert not client.is_at_least("0.19.0") or content("empty.txt") == b""
    assert content("live.txt") == b"second"
    assert content("end.txt") == b"the end"
    assert content("results.csv") == b"a,b\n1,2\n"


@flow("alerts")
def alerting(client: Client) -> None:
    client.run("alerting")
    (alert,) = cast(Any, client.only_run())["alerts"]
    assert (alert["title"], alert["text"], alert["level"]) == ("a title", "a text", "WARN")


@flow("mark_preempting")
def preempting(client: Client) -> None:
    client.run("preempting", code=1)
    assert client.stored("code-0")["state"] == "finished"
    assert client.stored("code-1")["state"] == "preempted"
    assert client.stored("code-1")["exit_code"] == 1


@flow("stopped from the server")
def stopping(client: Client) -> None:
    with client.start("stopping") as process:
        process.wait_for("ready")
        asked = client.bucket("endless", "id")
        reply = client.graphql(
            "mutation S($id: ID!) { stopRun(input: {id: $id}) { success } }", id=asked["id"]
        )
        assert reply["stopRun"]["success"]
        process.end(None)
    run = client.stored("endless")
    assert run["state"] == "killed"
    assert 0 < run["steps"] < 3000


@flow("shared mode: two writers of one run", since="0.19.11")
def shared(client: Client) -> None:
    with client.start("shared", "rank0") as first:
        wait_until(lambda: client.api.runs(project=f"{client.entity}/{client.project}"))
        with client.start("shared", "rank1") as second:
            second.end()
        first.end()
    run = client.stored("together")
    assert run["state"] == "finished"
    series = client.series("together")
    for label in ("rank0", "rank1"):
        assert run["config"][label] is True
        assert run["summary"][f"{label}/done"] is True
        assert series[f"{label}/value"]["values"] == list(range(10))
        assert f"console of {label}" in client.console("together")
