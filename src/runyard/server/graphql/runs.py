"""A run, as GraphQL fields."""

from __future__ import annotations

import base64
import json
import sqlite3
import time
from collections.abc import Mapping
from typing import Any

from runyard.server.graphql.executor import Source
from runyard.server.graphql.inputs import as_list
from runyard.server.store.history import EVENTS, HISTORY, count_rows, last_row
from runyard.server.store.lines import count_lines
from runyard.server.store.runs import Row
from runyard.server.tracker import Tracker


def run_fields(tracker: Tracker, row: Row) -> Source:
    """What needs nothing but the run's own row; counts are asked for when wanted."""

    async def history_lines(_arguments: Mapping[str, Any]) -> int:
        return await tracker.read(count_rows, row["key"], HISTORY)

    return {**_row_fields(row), "historyLineCount": history_lines}


def upserted_fields(connection: sqlite3.Connection, row: Row) -> Source:
    return {
        **_row_fields(row),
        "historyLineCount": count_rows(connection, row["key"], HISTORY),
    }


def resume_fields(connection: sqlite3.Connection, row: Row) -> Source:
    """Where an earlier client stopped. Clients fail on any null among these."""
    key = row["key"]

    def wandb_config(arguments: Mapping[str, Any]) -> str:
        kept = _client_internals(row)
        # A key that is missing must stay missing: clients take a null for "it started".
        wanted = as_list(arguments, "keys")
        return json.dumps({name: kept[name] for name in wanted if name in kept})

    return {
        **_row_fields(row),
        "historyLineCount": count_rows(connection, key, HISTORY),
        "eventsLineCount": count_rows(connection, key, EVENTS),
        "logLineCount": count_lines(connection, key, "output"),
        # A list with one empty object, never an empty list, where there are no lines.
        "historyTail": json.dumps([last_row(connection, key, HISTORY) or "{}"]),
        "eventsTail": json.dumps([last_row(connection, key, EVENTS) or "{}"]),
        "wandbConfig": wandb_config,
    }


def _client_internals(row: Row) -> Mapping[str, Any]:
    """What the client keeps for itself in the config."""
    entry = json.loads(row["config"]).get("_wandb")
    kept = entry.get("value") if isinstance(entry, dict) else None
    return kept if isinstance(kept, dict) else {}


def _row_fields(row: Row) -> Source:
    entity = {"id": row["entity"], "name": row["entity"]}
    return {
        "__typename": "Run",
        "id": base64.b64encode(f"Run:{row['key']}".encode()).decode(),
        "name": row["id"],
        "displayName": row["name"],
        "description": row["notes"],
        "notes": row["notes"],
        "config": row["config"],
        "summaryMetrics": row["summary"],
        "systemMetrics": "{}",
        "tags": json.loads(row["tags"]),
        "state": row["state"],
        "group": row["group"],
        "jobType": row["job_type"],
        "sweepName": row["sweep"],
        "commit": row["commit_hash"],
        "host": row["host"],
        "readOnly": False,
        "stopped": False,
        "createdAt": _timestamp(row["created_at"]),
        "heartbeatAt": _timestamp(row["heartbeat_at"] or row["created_at"]),
        "projectId": row["project"],
        "user": {"name": row["entity"], "username": row["entity"]},
        "project": {
            "__typename": "Project",
            "id": f"{row['entity']}/{row['project_name']}",
            "internalId": row["project"],
            "name": row["project_name"],
            "entityName": row["entity"],
            "entity": entity,
        },
    }


def _timestamp(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
