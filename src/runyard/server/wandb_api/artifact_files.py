"""The routes by which the contents and manifests of artifacts come and go."""

from __future__ import annotations

import asyncio
import base64
import hashlib

from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse

from runyard.server.artifacts import blobs, manifests, visibility
from runyard.server.http.access import caller_of, must_write, signed, tracker_of
from runyard.server.http.answers import HttpError, answer, read_bytes
from runyard.server.http.routes import Access, Endpoint
from runyard.server.people.permissions import RUNS, may_read, readable
from runyard.server.people.signed_addresses import MANIFEST_NAME, Kind
from runyard.server.store.incoming import WrongDigest
from runyard.server.tracker import Tracker

# About a million files.
_LARGEST_MANIFEST = 256 << 20


async def put_blob(request: Request) -> Response:
    tracker: Tracker = request.app.state.tracker
    caller, (entity, digest) = signed(request, Kind.BLOB_UP)
    must_write(request, caller, entity)
    try:
        await tracker.blobs.receive(tracker, entity, digest, request.stream())
    except WrongDigest as error:
        raise HttpError(400, f"what arrived is not the file that was announced: {error}") from error
    response = answer({})
    response.headers["ETag"] = f'"{base64.b64decode(digest).hex()}"'
    return response


async def get_blob(request: Request) -> Response:
    caller, (key, digest, name) = signed(request, Kind.BLOB_DOWN)
    # Whoever has left the team since the address was handed out has it for nothing.
    row = await tracker_of(request).read(visibility.artifact, key, readable(caller))
    if row is None:
        raise HttpError(404, "there is no such file")
    return await _send_blob(request, row["entity"], digest, name)


async def get_blob_by_md5(request: Request) -> Response:
    """Where clients look that have no address for a file: the hex MD5 stands in the path."""
    entity, *parts = request.path_params["rest"].split("/")
    if not may_read(caller_of(request), entity):
        raise HttpError(404, "there is no such file")
    for number, part in enumerate(parts):
        if len(part) == 32 and set(part) <= set("0123456789abcdef"):
            digest = base64.b64encode(bytes.fromhex(part)).decode()
            return await _send_blob(request, entity, digest, "/".join(parts[number + 1 :]) or part)
    raise HttpError(404, "there is no MD5 in this address")


async def put_manifest(request: Request) -> Response:
    tracker: Tracker = request.app.state.tracker
    caller, (key, digest) = signed(request, Kind.MANIFEST_UP)
    row = await tracker.read(manifests.by_key, key)
    if row is None or not tracker.accounts.may_write(caller, row["entity"]):
        raise HttpError(404, "the artifact of this manifest is gone")
    text = await read_bytes(request, _LARGEST_MANIFEST)
    try:
        frame, entries = await asyncio.to_thread(_check_manifest, text, digest)
    except (manifests.BadManifest, WrongDigest) as error:
        raise HttpError(400, str(error)) from error
    # What is committed does not change: this is a retry whose first answer was lost.
    if row["state"] == "PENDING":
        # In pieces, so that others get their turn in between.
        for piece in manifests.in_pieces(entries, manifests.ENTRIES_AT_ONCE):
            await tracker.write(manifests.put_entries, key, piece)
        await tracker.write(manifests.finish, key, frame)
    return answer({})


async def get_manifest(request: Request) -> Response:
    tracker = tracker_of(request)
    caller, (key,) = signed(request, Kind.MANIFEST_DOWN)
    manifest = await tracker.read(manifests.by_key, key)
    if manifest is None or not await tracker.read(
        visibility.artifact, manifest["artifact"], readable(caller)
    ):
        raise HttpError(404, "the artifact of this manifest is gone")
    contents = await manifests.written(tracker, key)
    if contents is None:
        raise HttpError(404, manifests.GONE)
    return StreamingResponse(contents, media_type="application/json")


ENDPOINTS = [
    Endpoint("GET", "/artifactsV2/{region}/{rest:path}", get_blob_by_md5, RUNS, access=Access.FILE),
    Endpoint("GET", "/artifacts/{rest:path}", get_blob_by_md5, RUNS, access=Access.FILE),
    Endpoint("PUT", f"{Kind.BLOB_UP.value}/{{token}}", put_blob, access=Access.EVERYBODY),
    Endpoint("PUT", f"{Kind.MANIFEST_UP.value}/{{token}}", put_manifest, access=Access.EVERYBODY),
    Endpoint("GET", f"{Kind.BLOB_DOWN.value}/{{token}}", get_blob, access=Access.EVERYBODY),
    Endpoint(
        "GET",
        f"{Kind.MANIFEST_DOWN.value}/{{token}}/{MANIFEST_NAME}",
        get_manifest,
        access=Access.EVERYBODY,
    ),
]


async def _send_blob(request: Request, entity: str, digest: str, name: str) -> Response:
    tracker: Tracker = request.app.state.tracker
    row = await tracker.read(blobs.find, entity, digest)
    if row is None:
        raise HttpError(404, f"the contents of {name[:200]!r} are not here")
    # As an attachment: a page that a program uploaded must not run as one of ours.
    return FileResponse(
        tracker.blobs.path(row["file"]),
        filename=name.rpartition("/")[2],
        media_type="application/octet-stream",
    )


def _check_manifest(text: bytes, digest: str) -> tuple[str, list[manifests.Entry]]:
    md5 = base64.b64encode(hashlib.md5(text, usedforsecurity=False).digest()).decode()
    if digest and md5 != digest:
        raise WrongDigest(f"the manifest's MD5 is {md5}, and {digest} was announced")
    return manifests.parse(text)
