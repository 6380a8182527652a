"""A run, as GraphQL fields."""

from __future__ import annotations

import json
import time
from sqlite3 import Connection

from runyard.server.history.forks import Fork
from runyard.server.history.history import EVENTS, HISTORY, count_rows, last_row
from runyard.server.processes import clients
from runyard.server.processes.origins import read_internals
from runyard.server.runs import runs, states
from runyard.server.store.sql import Row
from runyard.server.store.store import Needed, Transfer
from runyard.server.tracker import Tracker
from runyard.server.tracking import upserts
from runyard.server.wandb_api.fields import (
    artifact_fields,
    history_fields,
    log_fields,
    run_file_fields,
)
from runyard.server.wandb_api.fields.upsert_input import read_upsert
from runyard.server.wandb_api.graphql.inputs import Arguments
from runyard.server.wandb_api.graphql.pages import timestamp
from runyard.server.wandb_api.graphql.request import Refusal, Request, Source
from runyard.server.wandb_api.graphql.run_ids import run_id, run_key

_MISSING = "there is no such run any more"


def in_project(request: Request, entity: str, project: str) -> Source:
    tracker = request.tracker

    async def run(arguments: Arguments) -> Source | None:
        row = await tracker.read(runs.by_path, entity, project, arguments.text("name") or "")
        return None if row is None else run_fields(request, row)

    async def bucket(arguments: Arguments) -> Source | None:
        row = await tracker.read(runs.by_path, entity, project, arguments.text("name") or "")
        # A run that only we know of has not started, as far as its client is concerned.
        if row is None or not row["seen_client"]:
            return None
        if request.may_write(entity):  # Who only looks will not go on with it.
            await tracker.write(clients.ask_to_resume, row["key"], time.time())
        return {**run_fields(request, row), **await tracker.read(resume_fields, row)}

    return {"run": run, "bucket": bucket}


def mutations(request: Request) -> Source:
    async def upsert_bucket(arguments: Arguments) -> Source:
        has_id = bool(arguments.text("id"))
        key = await run_key(request, arguments) if has_id else None
        message = read_upsert(arguments, request.caller, key, request.writer)
        await _refuse_foreign(request, message)
        if has_id and key is None:
            raise Refusal(_MISSING)
        try:
            row, inserted = await _upsert(request.tracker, message)
        except upserts.Unknown as error:
            raise Refusal(str(error)) from error
        bucket = await request.tracker.read(upserted_fields, row)
        return {"bucket": {**run_fields(request, row), **bucket}, "inserted": inserted}

    return {"upsertBucket": upsert_bucket}


async def _upsert(tracker: Tracker, message: upserts.Upsert) -> tuple[Row, bool]:
    made: list[Transfer] = []
    while True:
        try:
            return await tracker.write(upserts.upsert, message, time.time(), made)
        except Needed as needed:
            transfer = needed.transfer
            if isinstance(transfer, Fork):
                child = await tracker.write(upserts.ensure, message, time.time())
                transfer = transfer.into(child)
                await tracker.transfer(child, transfer)
            else:
                await tracker.transfer(needed.run, transfer)
            made.append(transfer)


async def _refuse_foreign(request: Request, message: upserts.Upsert) -> None:
    """Neither where a run is to be, nor where it is now, may be somebody else's."""
    if not request.may_write(message.entity):
        raise Refusal(
            f"{message.entity!r} is not an entity that {request.caller.name!r} may write to: use "
            f"your own, or a team of yours (`runyard users teams list`)"
        )
    known = None if message.key is None else await request.tracker.read(runs.by_key, message.key)
    if known is not None and not request.may_write(known["entity"]):
        raise Refusal(_MISSING)


def run_fields(request: Request, row: Row) -> Source:
    """A run; what costs more than its row is looked up when it is asked for."""

    return {
        **row_fields(row),
        "historyLineCount": request.reads(count_rows, row["key"], HISTORY),
        **history_fields.in_run(request, row),
        **log_fields.in_run(request, row["key"]),
        **run_file_fields.in_run(request, row),
        **artifact_fields.in_run(request, row["key"]),
    }


def upserted_fields(db: Connection, row: Row) -> Source:
    return {
        **row_fields(row),
        "historyLineCount": count_rows(db, row["key"], HISTORY),
    }


def resume_fields(db: Connection, row: Row) -> Source:
    """Where an earlier client stopped. Clients fail on any null among these."""
    key = row["key"]
    history = count_rows(db, key, HISTORY)
    # What has rows has started, though its client died before it said so.
    internals = {**({"t": {}} if history else {}), **read_internals(row["config"])}

    def wandb_config(arguments: Arguments) -> str:
        # A key that is missing must stay missing: clients take a null for "it started".
        wanted = arguments.texts("keys")
        return json.dumps({name: internals[name] for name in wanted if name in internals})

    return {
        **row_fields(row),
        "historyLineCount": history,
        "eventsLineCount": count_rows(db, key, EVENTS),
        "logLineCount": clients.count_console(db, key),
        # A list with one empty object, never an empty list, where there are no lines.
        "historyTail": json.dumps([last_row(db, key, HISTORY) or "{}"]),
        "eventsTail": json.dumps([last_row(db, key, EVENTS) or "{}"]),
        "wandbConfig": wandb_config,
    }


def row_fields(row: Row) -> Source:
    entity = {"id": row["entity"], "name": row["entity"]}
    return {
        "__typename": "Run",
        "id": run_id(row["key"]),
        "name": row["id"],
        "displayName": row["name"],
        "description": row["notes"],
        "notes": row["notes"],
        "config": row["config"],
        "summaryMetrics": row["summary"],
        "tags": json.loads(row["tags"]),
        "state": row["state"],
        "group": row["group"],
        "jobType": row["job_type"],
        "sweepName": row["sweep"],
        "commit": row["commit_hash"],
        "host": row["host"],
        "readOnly": False,
        "stopped": bool(row["stop_asked"]),
        "shouldStop": bool(row["stop_asked"]),
        "running": row["state"] in states.ALIVE,
        "failed": row["state"] in ("failed", "crashed"),
        "exitcode": row["exit_code"],
        "createdAt": timestamp(row["created_at"]),
        "heartbeatAt": timestamp(row["heartbeat_at"] or row["created_at"]),
        "projectId": row["project"],
        "user": {"name": row["user_name"], "username": row["user_name"]},
        "project": {
            "__typename": "Project",
            "id": f"{row['entity']}/{row['project_name']}",
            "internalId": row["project"],
            "name": row["project_name"],
            "entityName": row["entity"],
            "entity": entity,
        },
    }
