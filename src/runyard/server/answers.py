"""Answers in JSON that every reader takes, and bodies read with a limit."""

from __future__ import annotations

import gzip
import json
import math
import zlib
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

# Clients send up to about 10 MiB of lines at once, which escaping can triple.
LARGEST_BODY = 64 << 20


class Unacceptable(Exception):
    """A request that will not be right the next time either."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status = status


def answer(content: Any, status: int = 200) -> Response:
    """JSON in the strict sense: NaN and the infinities travel as text."""
    try:
        text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    except ValueError:
        text = json.dumps(strict(content), allow_nan=False, separators=(",", ":"))
    return Response(text, status, media_type="application/json")


def strict(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key: strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [strict(item) for item in value]
    return value


async def read_body(request: Request) -> bytes:
    """The whole body, unpacked where it is compressed."""
    pieces, size = [], 0
    async for piece in request.stream():
        size += len(piece)
        if size > LARGEST_BODY:
            raise Unacceptable(413, f"the body is larger than {LARGEST_BODY >> 20} MiB")
        pieces.append(piece)
    body = b"".join(pieces)
    if request.headers.get("content-encoding") == "gzip":
        return _unzip(body)
    return body


async def read_json(request: Request) -> dict[str, Any]:
    body = await read_body(request)
    try:
        content = json.loads(body)
    except ValueError as error:
        raise Unacceptable(400, f"the body is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise Unacceptable(400, "the body is not a JSON object")
    return content


def _unzip(body: bytes) -> bytes:
    # Unpacked with a limit: a few kilobytes can hold gigabytes of zeros.
    unpacker = zlib.decompressobj(wbits=31)
    try:
        content = unpacker.decompress(body, LARGEST_BODY)
    except (zlib.error, gzip.BadGzipFile) as error:
        raise Unacceptable(400, f"the body is not gzip: {error}") from error
    if unpacker.unconsumed_tail:
        raise Unacceptable(413, f"the body is larger than {LARGEST_BODY >> 20} MiB unpacked")
    return content
