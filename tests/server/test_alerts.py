"""`wandb.alert`: kept, told in the log, listed."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from tests.server.asgi import Client
from tests.server.conftest import Upsert
from tests.server.processes import run_of

NOTIFY = """
mutation NotifyScriptableRunAlert($entityName: String!, $projectName: String!, $runName: String!,
    $title: String!, $text: String!, $severity: AlertSeverity = INFO, $waitDuration: Duration) {
  notifyScriptableRunAlert(input: {entityName: $entityName, projectName: $projectName,
      runName: $runName, title: $title, text: $text, severity: $severity,
      waitDuration: $waitDuration}) { success } }
"""


def _alert(client: Client, **more: Any) -> Any:
    names = {"entityName": "ada", "projectName": "birds", "runName": "run1"}
    return client.graphql(NOTIFY, {**names, "title": "low", "text": "accuracy is low", **more})


def test_an_alert_is_kept_and_told(
    client: Client, upsert: Upsert, caplog: pytest.LogCaptureFixture
) -> None:
    upsert(name="run1")
    with caplog.at_level(logging.WARNING):
        answer = _alert(client, severity="ERROR", waitDuration=60_000)
    assert answer["data"] == {"notifyScriptableRunAlert": {"success": True}}
    _alert(client, waitDuration=60_000)  # Too soon after one of the same title.
    _alert(client, title="other")
    alerts = run_of(client)["alerts"]
    assert [(one["title"], one["level"]) for one in alerts] == [("low", "ERROR"), ("other", "INFO")]
    assert alerts[0]["text"] == "accuracy is low"
    assert "'low'" in caplog.text


def test_an_alert_of_no_run_is_refused(client: Client) -> None:
    assert "gone" in _alert(client, runName="gone")["errors"][0]["message"]
