"""Flows that read back: artifacts, models, the public API."""

from __future__ import annotations

from tests.wandb_clients.client import Client
from tests.wandb_clients.matrix import flow


@flow("artifacts: log, dedupe, aliases, use, download, lineage")
def artifacts(client: Client) -> None:
    assert "checked" in client.run("artifacts")
    assert client.stored("maker")["state"] == "finished"
    assert client.stored("taker")["state"] == "finished"


@flow("log_model, use_model", since="0.16.6")
def models(client: Client) -> None:
    client.run("models")
    assert client.stored("tester")["state"] == "finished"


@flow("public API: filters, order, history, files, update, delete")
def querying(client: Client) -> None:
    client.run("querying")
    run = client.stored("one")
    assert run["state"] == "finished"
    assert run["config"] == {"lr": 0.1, "n": {"m": 1}, "added": 5}
    assert run["tags"] == ["chosen"]
    assert run["summary"]["checked"] is True
    assert run["steps"] == 30
    left = client.api.runs(project=f"{client.entity}/{client.project}")
    assert {run["id"] for run in left} == {"one", "three"}
