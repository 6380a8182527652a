"""An artifact's version, as GraphQL fields, and the ways that lead to one."""

from __future__ import annotations

import json
from typing import Any

from runyard.server.artifacts import aliases, artifacts, manifests, visibility
from runyard.server.people.signed_addresses import MANIFEST_NAME, Kind
from runyard.server.store.sql import Row
from runyard.server.wandb_api.graphql import pages
from runyard.server.wandb_api.graphql.inputs import (
    ARTIFACT,
    COLLECTION,
    MANIFEST,
    Arguments,
    opaque,
)
from runyard.server.wandb_api.graphql.request import Request, Source
from runyard.server.wandb_api.graphql.run_ids import run_id

# What clients send for "whatever the team says", and read as "for ever", which is what it says.
_INHERITED_TTL, _NO_TTL = -1, -2

# Small entries, of which a version may have very many.
_MOST_FILES = 10_000


def queries(request: Request) -> Source:
    async def artifact(arguments: Arguments) -> Source | None:
        row = await request.see(visibility.artifact, arguments.key("id", ARTIFACT))
        return None if row is None else artifact_fields(request, row)

    async def client_id_mapping(arguments: Arguments) -> Source | None:
        client_id = arguments.text("clientID") or ""
        row = await request.tracker.read(artifacts.by_client_id, client_id)
        if row is None:
            return None
        if row["artifact"] is not None:
            seen = await request.see(visibility.artifact, row["artifact"])
            return None if seen is None else {"serverID": opaque(ARTIFACT, seen["key"])}
        seen = await request.see(visibility.collection, row["collection"])
        return None if seen is None else {"serverID": opaque(COLLECTION, seen["key"])}

    return {"artifact": artifact, "clientIDMapping": client_id_mapping}


def in_run(request: Request, run: int) -> Source:
    def with_role(role: str) -> Any:
        async def listed(arguments: Arguments) -> Source:
            size = pages.page_size(arguments)
            rows = await request.tracker.read(
                artifacts.of_run,
                run,
                role,
                after=pages.cursor_number(arguments) or 0,
                limit=size + 1,
            )
            edges = []
            for row in rows:
                version = await request.see(visibility.artifact, row["artifact"])
                if version is not None:
                    edges.append(pages.edge(row["key"], artifact_fields(request, version)))
            return pages.page(
                edges, size, await request.tracker.read(artifacts.count_of_run, run, role)
            )

        return listed

    return {
        "inputArtifacts": with_role(artifacts.USED),
        "outputArtifacts": with_role(artifacts.LOGGED),
    }


def project_info(row: Row) -> Source:
    return {
        "__typename": "Project",
        "id": f"{row['entity']}/{row['project_name']}",
        "internalId": opaque("ProjectInternalId", row["project"]),
        "name": row["project_name"],
        "entityName": row["entity"],
        "entity": {"__typename": "Entity", "id": row["entity"], "name": row["entity"]},
    }


def collection_info(row: Row) -> Source:
    return {
        "__typename": "ArtifactPortfolio" if row["is_portfolio"] else "ArtifactSequence",
        "id": opaque(COLLECTION, row["key"]),
        "name": row["name"],
        "project": project_info(row),
    }


def tag_fields(owner: str, names: list[str]) -> list[Source]:
    return [
        {"__typename": "Tag", "id": opaque("Tag", f"{owner}:{name}"), "name": name,
         "tagCategoryName": None}
        for name in names
    ]  # fmt: skip


def artifact_fields(request: Request, row: Row) -> Source:
    """A version; what costs more than its row is looked up when it is asked for."""
    tracker, key = request.tracker, row["key"]

    async def all_aliases(_arguments: Arguments) -> list[Source]:
        fields: list[Source] = []
        for member in await tracker.read(aliases.memberships, key):
            collection = await request.see(visibility.collection, member["collection"])
            if collection is not None:
                fields += await alias_fields(request, member, collection)
        return fields

    async def sequence_latest(_arguments: Arguments) -> Source | None:
        latest = await request.see(visibility.latest, row["collection"])
        return None if latest is None else artifact_fields(request, latest)

    async def created_by(_arguments: Arguments) -> Source | None:
        run = await request.see(visibility.run, row["run"])
        return None if run is None else _run_info(run)

    async def used_by(_arguments: Arguments) -> Source:
        keys = await tracker.read(artifacts.runs_of, key, artifacts.USED)
        rows = [await request.see(visibility.run, run) for run in keys]
        edges = [pages.edge(run["key"], _run_info(run)) for run in rows if run is not None]
        return pages.connection(edges, total=len(edges))

    async def all_memberships(_arguments: Arguments) -> Source:
        edges = []
        for member in await tracker.read(aliases.memberships, key):
            if await request.see(visibility.collection, member["collection"]) is not None:
                node = await membership_fields(request, member)
                edges.append(pages.edge(member["collection"], node))
        return pages.connection(edges, total=len(edges))

    return {
        "__typename": "Artifact",
        "id": opaque(ARTIFACT, key),
        "state": row["state"],
        "digest": row["digest"],
        "digestAlgorithm": "MANIFEST_MD5",
        "versionIndex": row["version"],
        "size": row["size"],
        "fileCount": row["file_count"],
        "storageBytes": row["size"],
        "commitHash": row["digest"],
        "description": row["description"],
        "metadata": row["metadata"],
        "labels": "{}",
        "historyStep": row["history_step"],
        "ttlDurationSeconds": _NO_TTL if row["ttl"] is None else max(row["ttl"], _NO_TTL),
        "ttlIsInherited": row["ttl"] in (None, _INHERITED_TTL),
        "tags": tag_fields(f"artifact {key}", json.loads(row["tags"])),
        "createdAt": pages.timestamp(row["created_at"]),
        "updatedAt": pages.timestamp(row["updated_at"]),
        "artifactType": {
            "__typename": "ArtifactType",
            "id": opaque("ArtifactType", row["type"]),
            "name": row["type"],
        },
        "artifactSequence": {
            "__typename": "ArtifactSequence",
            "id": opaque(COLLECTION, row["collection"]),
            "name": row["collection_name"],
            "project": project_info(row),
            "latestArtifact": sequence_latest,
        },
        "aliases": all_aliases,
        "artifactMemberships": all_memberships,
        "currentManifest": _manifest_fields(request, row),
        "files": files_of(request, row),
        "filesByManifestEntries": files_of(request, row),
        "createdBy": created_by,
        "usedBy": used_by,
    }


async def membership_fields(request: Request, member: Row) -> Source:
    """A version as a member of one collection, which may be one that it was linked to."""
    row = await request.see(visibility.artifact, member["artifact"])
    collection = await request.see(visibility.collection, member["collection"])
    place = f"{member['collection']}:{member['artifact']}"
    fields = {
        "__typename": "ArtifactCollectionMembership",
        "id": opaque("ArtifactCollectionMembership", place),
        "versionIndex": member["version"],
        "createdAt": pages.timestamp(member["created_at"]),
    }
    if row is None or collection is None:  # Deleted between two looks.
        return {**fields, "aliases": [], "artifactCollection": None, "artifact": None}
    return {
        **fields,
        "aliases": await alias_fields(request, member, collection),
        "artifactCollection": collection_info(collection),
        "artifact": artifact_fields(request, row),
        "files": files_of(request, row),
    }


async def alias_fields(request: Request, member: Row, collection: Row) -> list[Source]:
    """The names of a version in a collection. Old clients find its number among them."""
    held = await request.tracker.read(aliases.held, member["collection"], member["artifact"])
    return [
        {
            "__typename": "ArtifactAlias",
            "id": opaque("ArtifactAlias", f"{member['collection']}:{name}"),
            "alias": name,
            "artifactCollection": collection_info(collection),
        }
        for name in [*held, f"v{member['version']}"]
    ]


def files_of(request: Request, row: Row) -> Any:
    async def files(arguments: Arguments) -> Source:
        size, manifest = pages.page_size(arguments, most=_MOST_FILES), row["manifest"]
        if manifest is None:
            return pages.connection((), total=0)
        names = arguments.texts("names") or None
        entries = await request.tracker.read(
            manifests.entries_after,
            manifest,
            pages.cursor_text(arguments) or "",
            size + 1,
            names=names,
        )
        edges = [pages.edge(entry["path"], _file_fields(request, row, entry)) for entry in entries]

        async def total(_arguments: Arguments) -> int:
            return await request.tracker.read(manifests.count_entries, manifest, names or ())

        return pages.page(edges, size, row["file_count"] if names is None else total)

    return files


def _file_fields(request: Request, row: Row, entry: Row) -> Source:
    path, digest = entry["path"], entry["digest"]
    url = None
    if entry["is_stored"]:
        url = request.address(Kind.BLOB_DOWN, row["key"], digest, path)
    return {
        "__typename": "File",
        "id": opaque("File", f"{entry['manifest']}:{path}"),
        "name": path,
        "displayName": path,
        "url": url,
        # Clients go to a reference by themselves, and would send their key to an address here.
        "directUrl": url or "",
        "sizeBytes": entry["size"],
        "storagePath": f"wandb_artifacts/{path}",
        "mimetype": None,
        "updatedAt": pages.timestamp(row["updated_at"]),
        "digest": digest,
        "md5": digest,
    }


def _manifest_fields(request: Request, row: Row) -> Source | None:
    if row["manifest"] is None:
        return None
    url = f"{request.address(Kind.MANIFEST_DOWN, row['manifest'])}/{MANIFEST_NAME}"
    return {
        "id": opaque(MANIFEST, row["manifest"]),
        "file": {"__typename": "File", "id": opaque("File", row["manifest"]), "directUrl": url},
    }


def _run_info(row: Row) -> Source:
    return {
        "__typename": "Run",
        "id": run_id(row["key"]),
        "name": row["id"],
        "displayName": row["name"],
        "project": project_info(row),
    }
