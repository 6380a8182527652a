"""How a version comes in: announced, its files and manifest uploaded, committed."""

from __future__ import annotations

import time
from typing import Any

from runyard.server.artifacts import artifacts, blobs, manifests
from runyard.server.artifacts.aliases import check_alias
from runyard.server.artifacts.collections import Mismatch, check_collection, check_type
from runyard.server.people.signed_addresses import MANIFEST_NAME, Kind
from runyard.server.runs import runs
from runyard.server.store.names import BadName, check_project
from runyard.server.store.sql import Row
from runyard.server.wandb_api.fields.artifact_fields import artifact_fields
from runyard.server.wandb_api.graphql.inputs import ARTIFACT, MANIFEST, Arguments, key_of, opaque
from runyard.server.wandb_api.graphql.request import (
    Refusal,
    Request,
    Source,
    must_write,
    own_artifact,
    readable_artifact,
)

_LONGEST_DIGEST = 256
# By this name W&B's own server knows where it keeps contents itself, and clients ask for it.
_OWN_REGION = "minio-local"


def mutations(request: Request) -> Source:
    tracker = request.tracker

    async def create_artifact(arguments: Arguments) -> Source:
        new = await tracker.write(_read_new, request, arguments)
        try:
            row = await tracker.write(artifacts.create, new, time.time())
        except Mismatch as error:
            raise Refusal(str(error)) from error
        return {"artifact": artifact_fields(request, row)}

    async def create_manifest(arguments: Arguments) -> Source:
        row = await own_artifact(request, arguments.key("artifactID", ARTIFACT))
        kind = arguments.text("type") or manifests.FULL
        if kind not in (manifests.FULL, manifests.INCREMENTAL, manifests.PATCH):
            raise Refusal(f"{kind[:100]!r} is not a type of manifest")
        digest = arguments.text("digest") or ""
        base = arguments.key("baseArtifactID", ARTIFACT)
        key = await tracker.write(manifests.create, row["key"], kind, digest, base, time.time())
        return {"artifactManifest": _manifest_fields(request, key, digest)}

    async def update_manifest(arguments: Arguments) -> Source:
        key = arguments.key("artifactManifestID", MANIFEST) or 0
        row = await tracker.read(manifests.by_key, key)
        # Numbers of manifests are easily guessed: one that is not there is refused as another's is.
        await own_artifact(request, None if row is None else row["artifact"])
        assert row is not None
        digest = arguments.text("digest") or row["digest"]
        if row["state"] == artifacts.PENDING:
            base = arguments.key("baseArtifactID", ARTIFACT)
            await tracker.write(manifests.announce, key, digest, base)
        return {"artifactManifest": _manifest_fields(request, key, digest)}

    async def create_files(arguments: Arguments) -> Source:
        rows: dict[int, Row] = {}
        wanted: list[tuple[Row, str, str]] = []
        for spec in arguments.objects("artifactFiles"):
            key = key_of(ARTIFACT, spec.text("artifactID") or "")
            if key not in rows:
                rows[key] = await own_artifact(request, key)
            name, md5 = spec.text("name") or "", spec.text("md5") or ""
            if not manifests.is_md5(md5):
                raise Refusal(f"the md5 of {name[:100]!r} is not an MD5 in base64")
            wanted.append((rows[key], name, md5))
        here: set[tuple[str, str]] = set()
        for entity in {row["entity"] for row in rows.values()}:
            needed = [(row["key"], md5) for row, _, md5 in wanted if row["entity"] == entity]
            here |= {(entity, md5) for md5 in await tracker.write(blobs.claim, entity, needed)}
        nodes = []
        for row, name, md5 in wanted:
            nodes.append(_new_file(request, row, name, md5, (row["entity"], md5) in here))
            # Once is enough; whether it came is looked at when the version is committed.
            here.add((row["entity"], md5))
        return {"files": {"edges": [{"node": node} for node in nodes]}}

    async def commit_artifact(arguments: Arguments) -> Source:
        key = arguments.key("artifactID", ARTIFACT) or 0
        await own_artifact(request, key)
        try:
            row = await tracker.write(artifacts.commit, key, time.time())
        except (artifacts.Unknown, artifacts.Unfinished) as error:
            raise Refusal(str(error)) from error
        return {"artifact": artifact_fields(request, row)}

    async def use_artifact(arguments: Arguments) -> Source:
        row = await readable_artifact(request, arguments.key("artifactID", ARTIFACT))
        if arguments.text("runName"):
            must_write(request, request.entity(arguments))
        run = await tracker.read(_find_run, request, arguments)
        if run is not None:
            used_as = arguments.text("usedAs")
            await tracker.write(artifacts.note_run, run, row["key"], artifacts.USED, used_as)
        return {"artifact": artifact_fields(request, row)}

    async def create_type(arguments: Arguments) -> Source:
        name = arguments.text("name") or ""
        # A type is there once something is of it.
        return {"artifactType": {"id": opaque("ArtifactType", name), "name": name}}

    return {
        "createArtifact": create_artifact,
        "createArtifactType": create_type,
        "createArtifactManifest": create_manifest,
        "updateArtifactManifest": update_manifest,
        "createArtifactFiles": create_files,
        "commitArtifact": commit_artifact,
        "useArtifact": use_artifact,
    }


def _read_new(db: Any, request: Request, arguments: Arguments) -> artifacts.NewArtifact:
    entity = request.entity(arguments)
    must_write(request, entity)
    project = arguments.text("projectName") or "uncategorized"
    names = arguments.texts("artifactCollectionNames")
    name = arguments.text("artifactCollectionName") or (names[0] if names else "")
    kind = arguments.text("artifactTypeName") or ""
    _refuse_other_regions(arguments.text("storageRegion"))
    digest = arguments.text("digest") or ""
    aliases = [alias.text("alias") or "" for alias in arguments.objects("aliases")]
    tags = [tag.text("tagName") or "" for tag in arguments.objects("tags")]
    try:
        check_project(entity)
        check_project(project)
        check_collection(name)
        check_type(kind)
        for alias in aliases:
            check_alias(alias)
    except BadName as error:
        raise Refusal(str(error)) from error
    if not 0 < len(digest) <= _LONGEST_DIGEST:
        raise Refusal(f"{name} has no digest")
    return artifacts.NewArtifact(
        project=runs.ensure_project(db, entity, project, time.time()),
        collection=name,
        type=kind,
        digest=digest,
        run=_find_run(db, request, arguments),
        aliases=list(dict.fromkeys(aliases)),
        tags=list(dict.fromkeys(tag for tag in tags if tag)),
        description=arguments.text("description"),
        metadata=arguments.json("metadata"),
        history_step=arguments.whole("historyStep"),
        ttl=arguments.whole("ttlDurationSeconds"),
        client_id=arguments.text("clientID"),
        sequence_client_id=arguments.text("sequenceClientID"),
        distributed_id=arguments.text("distributedID"),
    )


def _refuse_other_regions(region: str | None) -> None:
    """Who wants contents kept somewhere else would not look for them here."""
    if region and region != _OWN_REGION:
        raise Refusal(
            f"there is no storage region {region[:100]!r} here: contents are kept in the server's "
            "state folder; leave storage_region out"
        )


def _find_run(db: Any, request: Request, arguments: Arguments) -> int | None:
    entity = request.entity(arguments)
    project, name = arguments.text("projectName") or "", arguments.text("runName") or ""
    row = runs.by_path(db, entity, project, name) if name else None
    return None if row is None else row["key"]


def _manifest_fields(request: Request, key: int, digest: str) -> Source:
    return {
        "__typename": "ArtifactManifest",
        "id": opaque(MANIFEST, key),
        "file": {
            "__typename": "File",
            "id": opaque("File", key),
            "name": MANIFEST_NAME,
            "displayName": MANIFEST_NAME,
            "uploadUrl": request.address(Kind.MANIFEST_UP, key, digest),
            "uploadHeaders": [],
        },
    }


def _new_file(request: Request, row: Row, name: str, md5: str, is_here: bool) -> Source:
    return {
        "__typename": "File",
        "id": opaque("File", f"{row['key']}:{name}"),
        "name": name,
        "displayName": name,
        "storagePath": f"wandb_artifacts/{name}",
        # Without an address the client takes it that the contents are here.
        "uploadUrl": None if is_here else request.address(Kind.BLOB_UP, row["entity"], md5),
        "uploadHeaders": [],
        # Large files come in one piece: they go to a disk, not to a store with a limit.
        "uploadMultipartUrls": None,
        "artifact": {"__typename": "Artifact", "id": opaque(ARTIFACT, row["key"])},
    }
