"""Artifact types and collections, as GraphQL fields of a project."""

from __future__ import annotations

import json
from typing import Any

from runyard.server.artifacts import aliases, artifacts, collections, visibility
from runyard.server.store.sql import Row
from runyard.server.wandb_api.fields.artifact_fields import (
    artifact_fields,
    collection_info,
    membership_fields,
    tag_fields,
)
from runyard.server.wandb_api.graphql import pages
from runyard.server.wandb_api.graphql.inputs import COLLECTION, Arguments, opaque
from runyard.server.wandb_api.graphql.request import Refusal, Request, Source


def queries(request: Request) -> Source:
    async def artifact_collection(arguments: Arguments) -> Source | None:
        row = await request.see(visibility.collection, arguments.key("id", COLLECTION))
        return None if row is None else collection_fields(request, row)

    return {"artifactCollection": artifact_collection}


def in_project(request: Request, entity: str, project: str) -> Source:
    async def types(arguments: Arguments) -> Source:
        rows = await request.tracker.read(collections.types, entity, project)
        after = pages.cursor_text(arguments) or ""
        edges = [
            pages.edge(row["name"], _type_fields(request, entity, project, row))
            for row in rows
            if row["name"] > after
        ]
        return pages.page(edges, pages.page_size(arguments), len(rows))

    async def one_type(arguments: Arguments) -> Source | None:
        for row in await request.tracker.read(collections.types, entity, project):
            if row["name"] == arguments.text("name"):
                return _type_fields(request, entity, project, row)
        return None

    async def membership(arguments: Arguments) -> Source | None:
        member = await request.tracker.read(
            artifacts.by_name, entity, project, arguments.text("name") or ""
        )
        return None if member is None else await membership_fields(request, member)

    return {
        "artifactTypes": types,
        "artifactType": one_type,
        "artifactCollectionMembership": membership,
        **_lookups(request, entity, project, None),
    }


def _lookups(request: Request, entity: str, project: str, kind: str | None) -> Source:
    """What can be looked up in a project, and the same in one type of it."""
    tracker = request.tracker

    async def artifact(arguments: Arguments) -> Source | None:
        name = arguments.text("name") or ""
        member = await tracker.read(artifacts.by_name, entity, project, name, kind)
        if member is None:
            return None
        row = await request.see(visibility.artifact, member["artifact"])
        return None if row is None else artifact_fields(request, row)

    def collection(is_wanted: tuple[bool, ...]) -> Any:
        async def find(arguments: Arguments) -> Source | None:
            name = arguments.text("name") or ""
            row = await tracker.read(collections.by_name, entity, project, name, kind)
            if row is None or bool(row["is_portfolio"]) not in is_wanted:
                return None
            return collection_fields(request, row)

        return find

    async def listed(arguments: Arguments) -> Source:
        size = pages.page_size(arguments)
        rows = await tracker.read(
            collections.listed,
            entity,
            project,
            kind,
            after=pages.cursor_number(arguments) or 0,
            limit=size + 1,
        )
        edges = [pages.edge(row["key"], collection_fields(request, row)) for row in rows]
        total = await tracker.read(collections.count, entity, project, kind)
        return pages.page(edges, size, total)

    return {
        "artifact": artifact,
        "artifactCollection": collection((False, True)),
        "artifactSequence": collection((False,)),
        "artifactPortfolio": collection((True,)),
        "artifactCollections": listed,
        "artifactSequences": listed,
    }


def _type_fields(request: Request, entity: str, project: str, row: Row) -> Source:
    return {
        "__typename": "ArtifactType",
        "id": opaque("ArtifactType", row["name"]),
        "name": row["name"],
        "description": None,
        "createdAt": pages.timestamp(row["created_at"]),
        **_lookups(request, entity, project, row["name"]),
    }


def collection_fields(request: Request, row: Row) -> Source:
    tracker, key = request.tracker, row["key"]

    async def versions(arguments: Arguments) -> Source:
        size = pages.page_size(arguments)
        if not _wants_committed(arguments):
            return pages.connection((), total=0)
        members = await tracker.read(
            artifacts.versions,
            key,
            newest=not (arguments.text("order") or "-").startswith("+"),
            after=pages.cursor_number(arguments),
            limit=size + 1,
        )
        edges = []
        for member in members:
            artifact = await request.see(visibility.artifact, member["artifact"])
            if artifact is not None:
                version = member["version"]
                node = artifact_fields(request, artifact)
                edges.append(pages.edge(version, node, version=f"v{version}"))
        return pages.page(edges, size, await tracker.read(artifacts.count_versions, key))

    async def membership(arguments: Arguments) -> Source | None:
        member = await tracker.read(aliases.resolve, key, arguments.text("aliasName") or "latest")
        return None if member is None else await membership_fields(request, member)

    async def all_aliases(arguments: Arguments) -> Source:
        after, size = pages.cursor_text(arguments) or "", pages.page_size(arguments)
        edges = [
            pages.edge(name, {"__typename": "ArtifactAlias", "alias": name,
                              "id": opaque("ArtifactAlias", f"{key}:{name}")})
            for name in await tracker.read(aliases.in_collection, key)
            if name > after
        ]  # fmt: skip
        return pages.page(edges, size)

    async def latest(_arguments: Arguments) -> Source | None:
        newest = await request.see(visibility.latest, key)
        return None if newest is None else artifact_fields(request, newest)

    kind = {"__typename": "ArtifactType", "id": opaque("ArtifactType", row["type"]),
            "name": row["type"]}  # fmt: skip
    tags = tag_fields(f"collection {key}", json.loads(row["tags"]))
    return {
        **collection_info(row),
        "description": row["description"],
        "state": "READY",
        "createdAt": pages.timestamp(row["created_at"]),
        "updatedAt": pages.timestamp(row["updated_at"]),
        "defaultArtifactType": kind,
        "digestAlgorithm": "MANIFEST_MD5",
        "tags": pages.connection((pages.edge(tag["name"], tag) for tag in tags), total=len(tags)),
        "aliases": all_aliases,
        "artifacts": versions,
        "artifactMembership": membership,
        "latestArtifact": latest,
    }


def _wants_committed(arguments: Arguments) -> bool:
    """Lists hold committed versions; a filter can only ask for others, of which there are none."""
    text = arguments.text("filters")
    if not text:
        return True
    try:
        filters = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refusal(f"filters is not JSON: {error}") from error
    return not isinstance(filters, dict) or filters.get("state", "COMMITTED") == "COMMITTED"
