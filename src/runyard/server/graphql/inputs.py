"""Arguments of GraphQL fields, checked. What is not as it should be is refused, never retried."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any

from runyard.server.graphql.executor import Refusal
from runyard.server.permissions import Caller
from runyard.server.store.names import BadName, check_project, check_run_id
from runyard.server.store.upserts import Upsert

_LARGEST_KEY = 2**63 - 1


def as_text(given: Mapping[str, Any], name: str) -> str | None:
    value = given.get(name)
    if value is not None and not isinstance(value, str):
        raise Refusal(f"{name} is not a text")
    return value


def as_list(given: Mapping[str, Any], name: str) -> list[str]:
    """A list of texts. Clients send a single value where a list has one."""
    value = given.get(name)
    values = value if isinstance(value, list) else [] if value is None else [value]
    if not all(isinstance(item, str) for item in values):
        raise Refusal(f"{name} is not a list of texts")
    return values


def as_object(given: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = given.get(name)
    if value is not None and not isinstance(value, dict):
        raise Refusal(f"{name} is not an object")
    return value or {}


def as_objects(given: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    value = given.get(name)
    values = value if isinstance(value, list) else [] if value is None else [value]
    if not all(isinstance(item, dict) for item in values):
        raise Refusal(f"{name} is not a list of objects")
    return values


def as_whole(given: Mapping[str, Any], name: str) -> int | None:
    """A whole number that SQLite can hold."""
    value = given.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > _LARGEST_KEY:
        raise Refusal(f"{name} is not a whole number")
    return value


def read_upsert(given: Mapping[str, Any], caller: Caller, writer: str = "") -> Upsert:
    """Check and translate the input of `upsertBucket`."""
    run_id = as_text(given, "name")
    entity = as_text(given, "entityName") or caller.name
    project = as_text(given, "modelName") or "uncategorized"
    try:
        check_project(project)
        check_project(entity)
        if run_id is not None:
            check_run_id(run_id)
    except BadName as error:
        raise Refusal(str(error)) from error
    return Upsert(
        id=run_id,
        entity=entity,
        project=project,
        user=caller.key,
        key=None if given.get("id") is None else as_key(given),
        name=as_text(given, "displayName"),
        config=as_json(given, "config"),
        summary=as_json(given, "summaryMetrics"),
        tags=None if given.get("tags") is None else as_list(given, "tags"),
        notes=as_text(given, "notes"),
        group=as_text(given, "groupName"),
        job_type=as_text(given, "jobType"),
        sweep=as_text(given, "sweep"),
        host=as_text(given, "host"),
        program=as_text(given, "jobProgram"),
        commit_hash=as_text(given, "commit"),
        repo=as_text(given, "jobRepo"),
        state=as_text(given, "state"),
        writer=writer,
    )


def as_count(given: Mapping[str, Any], name: str, default: int, most: int) -> int:
    """How many of something: clients are given no more than `most` at once."""
    value = given.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise Refusal(f"{name} is not a number of things")
    return min(value, most)


def as_key(given: Mapping[str, Any]) -> int:
    """A run's key out of the opaque id that we gave the client."""
    opaque = as_text(given, "id") or ""
    try:
        kind, _, key = base64.b64decode(opaque, validate=True).decode().partition(":")
        if kind == "Run" and 0 < int(key) <= _LARGEST_KEY:
            return int(key)
    except (binascii.Error, ValueError):
        pass
    raise Refusal(f"{opaque[:100]!r} is not the id of a run")


def as_json(given: Mapping[str, Any], name: str) -> str | None:
    """A JSON object in a text, as it was sent."""
    text = as_text(given, name)
    if text is not None:
        try:
            if not isinstance(json.loads(text), dict):
                raise ValueError("it is not an object")
        except (ValueError, RecursionError) as error:
            raise Refusal(f"{name} is not JSON: {error}") from error
    return text
