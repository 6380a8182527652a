"""Alerts: kept with their run, in their order, and not too many of them."""

from __future__ import annotations

from typing import Any

import pytest

from runyard.server.store import alerts
from tests.server.asgi import Client
from tests.server.conftest import Upsert

ALERT = """
mutation NotifyScriptableRunAlert($run: String!, $title: String!, $wait: Duration) {
  notifyScriptableRunAlert(input: {
    entityName: "ada", projectName: "birds", runName: $run, title: $title, text: "it diverged",
    severity: WARN, waitDuration: $wait
  }) { success }
}
"""


def _alert(client: Client, title: str, wait: object = 0, run: str = "run1") -> Any:
    return client.graphql(ALERT, {"run": run, "title": title, "wait": wait})


def test_alerts_are_kept_with_their_run(client: Client, upsert: Upsert) -> None:
    upsert(name="run1")
    assert _alert(client, "first")["data"]["notifyScriptableRunAlert"]["success"]
    assert _alert(client, "second")["data"]["notifyScriptableRunAlert"]["success"]
    kept = client.get("/api/run", name="run1").json()["alerts"]
    assert [alert["title"] for alert in kept] == ["first", "second"]
    assert kept[0]["text"] == "it diverged"
    assert kept[0]["level"] == "WARN"
    assert kept[0]["at"] > 0


def test_the_same_alert_within_its_wait_is_kept_once(client: Client, upsert: Upsert) -> None:
    upsert(name="run1")
    _alert(client, "loss", wait=60_000)
    again = _alert(client, "loss", wait=60_000)
    assert again["data"]["notifyScriptableRunAlert"] == {"success": False}
    _alert(client, "another", wait=60_000)
    _alert(client, "odd wait", wait="soon")
    kept = client.get("/api/run", name="run1").json()["alerts"]
    assert [alert["title"] for alert in kept] == ["loss", "another", "odd wait"]


def test_an_alert_of_no_run_is_refused(client: Client) -> None:
    assert "no run nowhere" in _alert(client, "loss", run="nowhere")["errors"][0]["message"]


def test_a_run_that_alerts_in_every_step_keeps_the_last(
    client: Client, upsert: Upsert, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alerts, "_MOST_OF_A_RUN", 3)
    upsert(name="run1")
    for number in range(5):
        _alert(client, f"step {number}")
    kept = client.get("/api/run", name="run1").json()["alerts"]
    assert [alert["title"] for alert in kept] == ["step 2", "step 3", "step 4"]
