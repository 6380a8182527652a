"""What can be changed of artifacts that are there: aliases, tags, texts, links; and deletion."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Mapping, Sequence
from sqlite3 import Connection
from typing import Any

from runyard.server.artifacts import aliases, artifact_deletion, artifacts, collections
from runyard.server.artifacts.aliases import check_alias
from runyard.server.artifacts.collections import Mismatch, check_collection, check_type
from runyard.server.runs import runs
from runyard.server.store.names import BadName, check_project
from runyard.server.store.sql import Row
from runyard.server.wandb_api.fields.artifact_fields import (
    artifact_fields,
    membership_fields,
    tag_fields,
)
from runyard.server.wandb_api.fields.collection_fields import collection_fields
from runyard.server.wandb_api.graphql.inputs import ARTIFACT, COLLECTION, Arguments, opaque
from runyard.server.wandb_api.graphql.request import (
    Refusal,
    Request,
    Source,
    must_write,
    own_artifact,
    own_collection,
)


def mutations(request: Request) -> Source:
    tracker = request.tracker

    async def update_artifact(arguments: Arguments) -> Source:
        await own_artifact(request, _artifact_key(arguments))
        row = await tracker.write(_update, arguments, _artifact_key(arguments))
        return {"artifact": artifact_fields(request, row)}

    async def add_aliases(arguments: Arguments) -> Source:
        await own_artifact(request, _artifact_key(arguments))
        await tracker.write(_change_aliases, request, arguments, _artifact_key(arguments), True)
        return {"success": True}

    async def delete_aliases(arguments: Arguments) -> Source:
        await own_artifact(request, _artifact_key(arguments))
        await tracker.write(_change_aliases, request, arguments, _artifact_key(arguments), False)
        return {"success": True}

    async def delete_artifact(arguments: Arguments) -> Source:
        await own_artifact(request, _artifact_key(arguments))
        key, with_aliases = _artifact_key(arguments), bool(arguments.get("deleteAliases"))
        try:
            freed = await tracker.write(artifact_deletion.delete, key, with_aliases=with_aliases)
        except (artifacts.Unknown, artifact_deletion.Aliased) as error:
            raise Refusal(str(error)) from error
        await tracker.blobs.free(tracker, freed)
        return {"artifact": {"__typename": "Artifact", "id": opaque(ARTIFACT, key)}}

    async def link_artifact(arguments: Arguments) -> Source:
        must_write(request, request.entity(arguments))
        member = await tracker.write(_link, request, arguments)
        return {
            "versionIndex": member["version"],
            "artifactMembership": await membership_fields(request, member),
        }

    async def unlink_artifact(arguments: Arguments) -> Source:
        portfolio = arguments.key("artifactPortfolioID", COLLECTION) or 0
        row = await own_collection(request, portfolio)
        if not row["is_portfolio"]:
            raise Refusal("there are no links in this collection")
        await tracker.write(aliases.leave, portfolio, _artifact_key(arguments))
        return {"success": True}

    def collection_change(id_name: str, columns: Mapping[str, str]) -> Any:
        async def change(arguments: Arguments) -> Source:
            await own_collection(request, arguments.key(id_name, COLLECTION))
            row = await tracker.write(_change_collection, arguments, id_name, columns)
            return {"artifactCollection": collection_fields(request, row)}

        return change

    def collection_deletion(id_name: str) -> Any:
        async def delete(arguments: Arguments) -> Source:
            key = arguments.key(id_name, COLLECTION) or 0
            row = await own_collection(request, key)
            freed = await tracker.write(artifact_deletion.delete_collection, key)
            await tracker.blobs.free(tracker, freed)
            return {"artifactCollection": {**collection_fields(request, row), "state": "DELETED"}}

        return delete

    async def add_collection_tags(arguments: Arguments) -> Source:
        row = await tracker.write(_tag_collection, request, arguments, True)
        return {"tags": tag_fields(f"collection {row['key']}", json.loads(row["tags"]))}

    async def delete_collection_tags(arguments: Arguments) -> Source:
        await tracker.write(_tag_collection, request, arguments, False)
        return {"success": True}

    texts = {"name": "name", "description": "description"}
    return {
        "updateArtifact": update_artifact,
        "addAliases": add_aliases,
        "deleteAliases": delete_aliases,
        "deleteArtifact": delete_artifact,
        "linkArtifact": link_artifact,
        "unlinkArtifact": unlink_artifact,
        "updateArtifactSequence": collection_change("artifactSequenceID", texts),
        "updateArtifactPortfolio": collection_change("artifactPortfolioID", texts),
        "moveArtifactSequence": collection_change(
            "artifactSequenceID", {"destinationArtifactTypeName": "type"}
        ),
        "deleteArtifactSequence": collection_deletion("artifactSequenceID"),
        "deleteArtifactPortfolio": collection_deletion("artifactPortfolioID"),
        "createArtifactCollectionTagAssignments": add_collection_tags,
        "deleteArtifactCollectionTagAssignments": delete_collection_tags,
    }


def _artifact_key(arguments: Arguments) -> int:
    return arguments.key("artifactID", ARTIFACT) or 0


def _known(db: Connection, key: int) -> Row:
    row = artifacts.by_key(db, key)
    if row is None:
        raise Refusal("there is no such artifact any more")
    return row


def _update(db: Connection, arguments: Arguments, key: int) -> Row:
    """Null leaves a field as it is."""
    row = _known(db, key)
    columns: dict[str, Any] = {
        "description": arguments.text("description"),
        "metadata": arguments.json("metadata"),
        "ttl": arguments.whole("ttlDurationSeconds"),
        "tags": _changed_tags(row, _tags(arguments, "tagsToAdd"), _tags(arguments, "tagsToDelete")),
    }
    known = {name: value for name, value in columns.items() if value is not None}
    artifacts.update(db, row["key"], time.time(), **known)
    if arguments.get("aliases") is not None:
        # The whole list, as clients send that do not know of adding and deleting.
        names = _checked([alias.text("alias") or "" for alias in arguments.objects("aliases")])
        held = aliases.held(db, row["collection"], row["key"])
        gone = [name for name in held if name not in names]
        aliases.take(db, row["collection"], row["key"], gone)
        aliases.give(db, row["collection"], row["key"], names)
    return _known(db, key)


def _change_aliases(
    db: Connection, request: Request, arguments: Arguments, key: int, adds: bool
) -> None:
    row = _known(db, key)
    for alias in arguments.objects("aliases"):
        entity = request.entity(alias)
        must_write(request, entity)
        project = alias.text("projectName") or ""
        name = alias.text("artifactCollectionName") or ""
        collection = collections.by_name(db, entity, project, name)
        if collection is None or aliases.membership(db, collection["key"], row["key"]) is None:
            raise Refusal(f"this artifact is not in {entity}/{project}/{name}")
        names = [alias.text("alias") or ""]
        if adds:
            aliases.give(db, collection["key"], row["key"], _checked(names))
        else:
            aliases.take(db, collection["key"], row["key"], names)


def _link(db: Connection, request: Request, arguments: Arguments) -> Row:
    key = arguments.key("artifactID", ARTIFACT)
    client_id = arguments.text("clientID")
    if key is None and client_id:
        known = artifacts.by_client_id(db, client_id)
        key = None if known is None else known["artifact"]
    entity = request.entity(arguments)
    project = arguments.text("projectName") or "uncategorized"
    portfolio = arguments.text("artifactPortfolioName") or ""
    names = [alias.text("alias") or "" for alias in arguments.objects("aliases")]
    now = time.time()
    linked = None if key is None else artifacts.by_key(db, key)
    # A version that others only lent may not be lent on: its link would outlive theirs.
    if linked is None or not request.may_read(linked["entity"]):
        raise Refusal("there is no such artifact any more")
    try:
        check_project(entity)
        check_project(project)
        check_collection(portfolio)
        target = runs.ensure_project(db, entity, project, now)
        user = request.caller.key
        names = _checked(names)
        return artifacts.link(db, linked["key"], target, portfolio, names, user, now)
    except (BadName, Mismatch, artifacts.Unknown, artifacts.Unfinished) as error:
        raise Refusal(str(error)) from error


def _change_collection(
    db: Connection, arguments: Arguments, id_name: str, columns: Mapping[str, str]
) -> Row:
    key = arguments.key(id_name, COLLECTION) or 0
    texts = {column: arguments.text(name) for name, column in columns.items()}
    known = {column: value for column, value in texts.items() if value is not None}
    try:
        if "name" in known:
            check_collection(known["name"])
        if "type" in known:
            check_type(known["type"])
        collections.update(db, key, time.time(), **known)
    except BadName as error:
        raise Refusal(str(error)) from error
    except sqlite3.IntegrityError as error:
        raise Refusal(f"there is a collection {known.get('name')} already") from error
    row = collections.by_key(db, key)
    if row is None:
        raise Refusal("there is no such collection any more")
    return row


def _tag_collection(db: Connection, request: Request, arguments: Arguments, adds: bool) -> Row:
    entity = request.entity(arguments)
    must_write(request, entity)
    project, name = (
        arguments.text("projectName") or "",
        arguments.text("artifactCollectionName"),
    )
    row = collections.by_name(db, entity, project, name or "")
    if row is None:
        raise Refusal(f"there is no collection {name} in {entity}/{project}")
    tags = _tags(arguments, "tags")
    changed = _changed_tags(row, tags if adds else [], [] if adds else tags)
    collections.update(db, row["key"], time.time(), tags=changed)
    stored = collections.by_key(db, row["key"])
    assert stored is not None
    return stored


def _tags(arguments: Arguments, name: str) -> list[str]:
    return [tag.text("tagName") or "" for tag in arguments.objects(name)]


def _changed_tags(row: Row, added: Sequence[str], deleted: Sequence[str]) -> str:
    tags = dict.fromkeys([*json.loads(row["tags"]), *added])
    return json.dumps([tag for tag in tags if tag and tag not in deleted])


def _checked(names: list[str]) -> list[str]:
    try:
        for name in names:
            check_alias(name)
    except BadName as error:
        raise Refusal(str(error)) from error
    return names
