"""Answers for a page that asks again and again: nothing twice, large ones compressed."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import math
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

from runyard.server.history.reading.dotted_names import MISSING
from runyard.server.http.access import caller_of, tracker_of
from runyard.server.http.answers import HttpError, strict
from runyard.server.people.permissions import may_read
from runyard.server.runs import projects
from runyard.server.store.sql import Row

_WORTH_PACKING = 8_000


def tag_of(request: Request, revision: int) -> str:
    """What stands for an answer: whose question, which one, and the last change it shows.

    Whose: a browser's next user, or who has left a team, must not be told that nothing changed.
    """
    caller = caller_of(request)
    sight = "/".join((caller.name, *sorted(caller.teams))).encode()
    query = request.scope.get("query_string", b"")
    question = hashlib.blake2b(sight + b"?" + query, digest_size=6).hexdigest()
    return f'W/"{revision}-{question}"'


def not_changed(request: Request, tag: str) -> Response | None:
    """The answer to a page that has this one already."""
    known = (part.strip() for part in request.headers.get("if-none-match", "").split(","))
    if tag not in known:
        return None
    return Response(status_code=304, headers={"ETag": tag, "Cache-Control": "no-cache"})


async def send_json(request: Request, content: Any, tag: str | None = None) -> Response:
    """JSON, quickly; NaN and the infinities must be texts already (see `plain`)."""
    try:
        body = orjson.dumps(content, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:  # Numbers beyond 64 bits, or halves of a surrogate pair.
        body = json.dumps(_unwrapped(content), separators=(",", ":")).encode()
    headers = {"Cache-Control": "no-cache"}
    if tag is not None:
        headers["ETag"] = tag
    if len(body) >= _WORTH_PACKING and "gzip" in request.headers.get("accept-encoding", ""):
        body = await asyncio.to_thread(gzip.compress, body, 1)
        headers |= {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
    return Response(body, headers=headers, media_type="application/json")


def plain(value: Any) -> Any:
    """A value as JSON takes it; what is missing is null."""
    if value is MISSING:
        return None
    if isinstance(value, float):
        return value if math.isfinite(value) else strict(value)
    return strict(value) if isinstance(value, dict | list) else value


def _unwrapped(content: Any) -> Any:
    """Without the pieces that only orjson knows."""
    if isinstance(content, orjson.Fragment):
        return json.loads(content.contents)
    if isinstance(content, dict):
        return {key: _unwrapped(item) for key, item in content.items()}
    if isinstance(content, list | tuple):
        return [_unwrapped(item) for item in content]
    return content


async def readable_project(request: Request) -> Row:
    """The project of the address, if the caller may see it."""
    entity, name = request.path_params["entity"], request.path_params["project"]
    return await project_at(request, f"{entity}/{name}")


async def project_at(request: Request, place: str) -> Row:
    entity, _, name = place.partition("/")
    row = await tracker_of(request).read(projects.by_path, entity, name)
    if row is None or not may_read(caller_of(request), entity):
        raise HttpError(404, f"there is no project {place[:200]!r}")
    return row
