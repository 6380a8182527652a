"""Answers in JSON that every reader takes, and bodies read with a limit."""

from __future__ import annotations

import asyncio
import json
import math
import zlib
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

from runyard.server.store import json_text

# For what clients log: up to about 10 MiB of lines at once, which escaping can triple.
LARGEST_BODY = 64 << 20
# For GraphQL.
LARGE_BODY = 16 << 20
# For everything else that a caller with a key sends.
_USUAL_BODY = 4 << 20
# For a caller without a key: a login code and a path.
_STRANGER_BODY = 4 << 10
# A list or an object takes 64 bytes and more of memory, and may come as 2 bytes of JSON. So many
# bytes of the largest body allow one more.
_BYTES_A_CONTAINER = 16
# What takes longer to read than a change of threads.
_LARGE_JSON = 256 << 10
# Deeper than any config or summary; Python's own limit is near 1,000.
_DEEPEST = 200


class HttpError(Exception):
    """A request that will not be right the next time either."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status = status


def answer(content: Any, status: int = 200) -> Response:
    """JSON in the strict sense: NaN and the infinities travel as text."""
    return Response(strict_text(content), status, media_type="application/json")


def strict_text(content: Any) -> str:
    """The text of such an answer."""
    try:
        return json.dumps(content, allow_nan=False, separators=(",", ":"))
    except (ValueError, RecursionError):
        return json.dumps(strict(content), allow_nan=False, separators=(",", ":"))


def quick_answer(content: Any) -> Response:
    """The same for what holds neither NaN nor infinities, for those who are asked by hundreds."""
    try:
        return Response(orjson.dumps(content), media_type="application/json")
    except TypeError:  # A whole number of more than 64 bits.
        return answer(content)


def strict(value: Any, depth: int = 0) -> Any:
    """What JSON can hold: the odd numbers as text, and nothing below a depth nobody looks into."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict | list | tuple) and depth >= _DEEPEST:
        return None
    if isinstance(value, dict):
        return {key: strict(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [strict(item, depth + 1) for item in value]
    return value


async def read_bytes(request: Request, largest: int) -> bytes:
    """The body as it comes. Without a key it may be only a few kilobytes."""
    if "caller" not in request.scope:
        largest = min(largest, _STRANGER_BODY)
    pieces, size = [], 0
    async for piece in request.stream():
        size += len(piece)
        if size > largest:
            raise HttpError(413, f"the body is larger than {_shown(largest)}")
        pieces.append(piece)
    return b"".join(pieces)


async def read_body(request: Request, largest: int = _USUAL_BODY) -> bytes:
    """The whole body, unpacked where it is compressed."""
    body = await read_bytes(request, largest)
    if request.headers.get("content-encoding", "").lower() == "gzip":
        if "caller" not in request.scope:
            raise HttpError(415, "without a key, nothing is unpacked")
        return await asyncio.to_thread(_unzip, body, largest)
    return body


async def read_json(request: Request, largest: int = _USUAL_BODY) -> dict[str, Any]:
    """The object in the body, with its texts as they came."""
    return parse_json(await read_body(request, largest), largest)


async def read_texts(request: Request, largest: int = _USUAL_BODY) -> dict[str, Any]:
    """The object in the body, with texts that SQLite takes."""
    body = await read_body(request, largest)
    if len(body) < _LARGE_JSON:
        return parse_json(body, largest, whole=True)
    return await asyncio.to_thread(parse_json, body, largest, whole=True)


def parse_json(body: bytes, largest: int, *, whole: bool = False) -> dict[str, Any]:
    """The object in a body. `whole`: with texts that SQLite takes."""
    most = largest // _BYTES_A_CONTAINER
    if body.count(b"[") + body.count(b"{") > most:
        raise HttpError(413, f"the body holds more than {most:,} lists and objects")
    try:
        content = json_text.parse(body, odd=whole_texts if whole else None)
    except RecursionError as error:
        raise HttpError(400, "the body is nested too deep") from error
    except ValueError as error:
        raise HttpError(400, f"the body is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise HttpError(400, "the body is not a JSON object")
    return content


def whole_text(text: str) -> str:
    """Text as SQLite takes it: half of a surrogate pair, which JSON lets through, is replaced."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def whole_texts(value: Any) -> Any:
    """`whole_text` for every text in what a body held."""
    if isinstance(value, str):
        return whole_text(value)
    if isinstance(value, dict):
        return {whole_text(key): whole_texts(item) for key, item in value.items()}
    if isinstance(value, list):
        return [whole_texts(item) for item in value]
    return value


def _unzip(body: bytes, largest: int) -> bytes:
    # Unpacked with a limit: a few kilobytes can hold gigabytes of zeros.
    unpacker = zlib.decompressobj(wbits=31)
    try:
        content = unpacker.decompress(body, largest + 1)
    except zlib.error as error:
        raise HttpError(400, f"the body is not gzip: {error}") from error
    if len(content) > largest:
        raise HttpError(413, f"the body is larger than {_shown(largest)} unpacked")
    if not unpacker.eof:
        raise HttpError(400, "the body is not gzip: it is cut off")
    return content


def _shown(size: int) -> str:
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"
