"""Flows of runs that go on: resumed, rewound, forked, synced later."""

from __future__ import annotations

import re

from tests.wandb_clients.client import Client
from tests.wandb_clients.matrix import flow


@flow("resume: allow, must, never")
def resuming(client: Client) -> None:
    for words, count, resumed, starts, then in (
        ("never:again", "3", False, 0, 3),
        ("allow:again", "2", True, 3, 5),
        ("must:again", "2", True, 5, 7),
    ):
        printed = client.run("resuming", words, count)
        assert f"resumed={resumed} starts={starts}\n" in printed, printed
        assert f"next={then}\n" in printed, printed
    # A process each: after a refused init, 0.16 and 0.17 leave a thread behind that reads from the
    # socket of their service, and takes the answer to the next init: that one waits forever.
    for words in ("never:again", "must:nowhere"):
        refused = client.run("resuming", words, "1")
        assert f"refused {words.partition(':')[0]}" in refused, refused
    run = client.stored("again")
    assert run["state"] == "finished"
    assert run["config"] == {"never": True, "allow": True, "must": True}
    steps = client.series("again")["seen"]["steps"]
    assert steps == list(range(7)), steps
    console = client.console("again")
    assert [f"line of {mode}" in console for mode in ("never", "allow", "must")] == [True] * 3
    assert len(client.api.runs(project=f"{client.entity}/{client.project}")) == 1


@flow("resume: auto, after a hard death")
def resuming_itself(client: Client) -> None:
    died = client.run("resuming", "auto", "3", "die", code=1)
    came_back = client.run("resuming", "auto", "2")
    run_id = re.search(r"id=(\w+) resumed=False", died)
    assert run_id is not None
    assert f"id={run_id[1]} resumed=True" in came_back
    assert client.only_run()["state"] == "finished"
    steps = client.series(run_id[1])["seen"]["steps"]
    assert steps == list(range(5)), steps


@flow("rewind: resume_from", since="0.17.9")
def rewinding(client: Client) -> None:
    client.run("rewinding", "rewind")
    values = client.series("base")["value"]
    assert values["steps"] == list(range(8)), values["steps"]
    assert values["values"] == [0, 1, 2, 3, 4, 105, 106, 107]


@flow("fork: fork_from", since="0.16.6")
def forking(client: Client) -> None:
    client.run("rewinding", "fork")
    values = client.series("branch")["value"]
    assert values["steps"] == list(range(8)), values["steps"]
    assert values["values"] == [0, 1, 2, 3, 4, 105, 106, 107]
    assert client.series("base")["value"]["values"] == list(range(10))


@flow("offline, wandb sync, sync again")
def syncing(client: Client) -> None:
    client.run("offline", "far:0:50")
    (folder,) = client.folder.glob("wandb/offline-run-*-far")
    client.wandb("sync", str(folder))
    _check_synced(client, 50)
    for mark in folder.glob("*.synced"):
        mark.unlink()  # What the client itself goes by; without it, it sends all again.
    client.wandb("sync", str(folder))
    _check_synced(client, 50)


@flow("offline segments of one run, synced in any order")
def syncing_segments(client: Client) -> None:
    client.run("offline", "far:0:20", "far:21:40", "near:0:20", "near:21:40")
    far = sorted(str(path) for path in client.folder.glob("wandb/offline-run-*-far"))
    near = sorted(str(path) for path in client.folder.glob("wandb/offline-run-*-near"))
    # Newer clients find out by themselves that the run is there already.
    append = [] if client.is_at_least("0.26.0") else ["--append"]
    for segments in (far, near[1:], near[:1]):
        client.wandb("sync", *append, *segments)
    for run_id in ("far", "near"):
        values = client.series(run_id)["value"]
        assert values["steps"] == values["values"] == [*range(20), *range(21, 40)], run_id


def _check_synced(client: Client, rows: int) -> None:
    run = client.stored("far")
    assert run["state"] == "finished"
    assert run["config"] == {"where": "a node without network"}
    assert run["summary"]["done"] == rows
    assert run["steps"] == rows + 1, run["steps"]
    assert client.series("far")["value"]["values"] == list(range(rows))
    assert client.console("far").count(f"offline until {rows}") == 1
    assert [name for name in run["files"] if name.startswith("media/images/")]
