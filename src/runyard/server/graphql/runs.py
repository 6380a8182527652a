"""A run, as GraphQL fields; and what a client says of one."""

from __future__ import annotations

import base64
import binascii
import json
import sqlite3
import time
from collections.abc import Mapping
from typing import Any

from runyard.server.graphql.executor import Refusal, Source
from runyard.server.store.lines import count_lines, last_line
from runyard.server.store.runs import Row, Upsert
from runyard.server.tracker import Caller, Tracker

_NOT_IN_IDS = set(":;,#?/'")
_NOT_IN_PROJECTS = set("/\\#?%:")


def read_upsert(given: Mapping[str, Any], caller: Caller) -> Upsert:
    """Check and translate the input of `upsertBucket`."""
    run_id, project = given.get("name"), given.get("modelName") or "uncategorized"
    if run_id is not None and (not run_id.strip() or _NOT_IN_IDS & set(run_id)):
        raise Refusal(f"{run_id!r} cannot be a run id: it is empty or holds one of :;,#?/'")
    if len(project) > 128 or _NOT_IN_PROJECTS & set(project):
        raise Refusal(f"{project!r} cannot be a project: too long, or holds one of /\\#?%:")
    return Upsert(
        id=run_id,
        entity=given.get("entityName") or caller.name,
        project=project,
        user=caller.key,
        key=_read_key(given.get("id")),
        name=given.get("displayName"),
        config=_checked_json(given.get("config"), "config"),
        summary=_checked_json(given.get("summaryMetrics"), "summaryMetrics"),
        tags=given.get("tags"),
        notes=given.get("notes"),
        group=given.get("groupName"),
        job_type=given.get("jobType"),
        sweep=given.get("sweep"),
        host=given.get("host"),
        program=given.get("jobProgram"),
        commit_hash=given.get("commit"),
        repo=given.get("jobRepo"),
        state=given.get("state"),
    )


def run_fields(tracker: Tracker, row: Row) -> Source:
    """What needs nothing but the run's own row; counts are asked for when wanted."""

    async def history_lines(_arguments: Mapping[str, Any]) -> int:
        return await tracker.read(count_lines, row["key"], "history")

    return {**_row_fields(row), "historyLineCount": history_lines}


def upserted_fields(connection: sqlite3.Connection, row: Row) -> Source:
    return {
        **_row_fields(row),
        "historyLineCount": count_lines(connection, row["key"], "history"),
    }


def resume_fields(connection: sqlite3.Connection, row: Row) -> Source:
    """Where an earlier client stopped. Clients fail on any null among these."""
    key = row["key"]

    def wandb_config(arguments: Mapping[str, Any]) -> str:
        kept = json.loads(row["config"]).get("_wandb", {}).get("value", {})
        # A key that is missing must stay missing: clients take a null for "it started".
        return json.dumps({name: kept[name] for name in arguments.get("keys", ()) if name in kept})

    return {
        **_row_fields(row),
        "historyLineCount": count_lines(connection, key, "history"),
        "eventsLineCount": count_lines(connection, key, "events"),
        "logLineCount": count_lines(connection, key, "output"),
        # A list with one empty object, never an empty list, where there are no lines.
        "historyTail": json.dumps([last_line(connection, key, "history") or "{}"]),
        "eventsTail": json.dumps([last_line(connection, key, "events") or "{}"]),
        "wandbConfig": wandb_config,
    }


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


def _read_key(opaque: str | None) -> int | None:
    if opaque is None:
        return None
    try:
        kind, _, key = base64.b64decode(opaque, validate=True).decode().partition(":")
        if kind == "Run":
            return int(key)
    except (binascii.Error, ValueError):
        pass
    raise Refusal(f"{opaque!r} is not the id of a run")


def _checked_json(text: str | None, name: str) -> str | None:
    if text is not None:
        try:
            if not isinstance(json.loads(text), dict):
                raise ValueError("it is not an object")
        except ValueError as error:
            raise Refusal(f"{name} is not JSON: {error}") from error
    return text
