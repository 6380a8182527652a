"""Curves for the page and for programs, packed: a head in JSON, then columns of numbers.

    4 bytes   length of the head
    head      JSON: one entry a run with its key, id, name, count and number of points
    columns   for each run in that order: x (float64), last, low, high (float32)

All numbers are little-endian; everything is padded to 8 bytes, so that a browser can lay typed
arrays over it.
"""

from __future__ import annotations

import json
import sqlite3
import struct
from collections.abc import Collection
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from runyard.server import arguments
from runyard.server.access import caller_of, tracker_of
from runyard.server.answers import Unacceptable
from runyard.server.permissions import readable
from runyard.server.store import runs
from runyard.server.store.curves import Curve, read_curves
from runyard.server.store.history import HISTORY
from runyard.server.store.keys import find_keys

_MOST_POINTS, _MOST_RUNS = 100_000, 10_000


async def curves(request: Request) -> Response:
    """One metric of a project's runs, or of the runs that are named."""
    given = request.query_params
    metric = given.get("metric")
    if not metric:
        raise Unacceptable(400, "metric is missing: which one?")
    points = min(arguments.number(given.get("points"), "points") or 1000, _MOST_POINTS)
    packed = await tracker_of(request).read(
        _packed,
        readable(caller_of(request)),
        given.get("project"),
        given.getlist("run"),
        metric,
        max(1, points),
        given.get("x"),
    )
    return Response(packed, media_type="application/octet-stream")


def _packed(
    connection: sqlite3.Connection,
    entities: Collection[str] | None,
    project: str | None,
    words: list[str],
    metric: str,
    points: int,
    x: str | None,
) -> bytes:
    rows = runs.newest(connection, project, None, _MOST_RUNS, entities=entities)
    if words:
        wanted = set(words)
        rows = [row for row in rows if row["id"] in wanted]
    keys = find_keys(connection, [metric, *([x] if x else [])])
    if metric not in keys:
        return pack([])
    found = read_curves(
        connection,
        [row["key"] for row in rows],
        HISTORY,
        keys[metric],
        points,
        keys.get(x, -1) if x else None,
    )
    named = {row["key"]: row for row in rows}
    return pack(
        [
            ({"run": run, "id": named[run]["id"], "name": named[run]["name"]}, curve)
            for run, curve in found.items()
        ]
    )


def pack(curves: list[tuple[dict[str, Any], Curve]]) -> bytes:
    """The answer's body."""
    head = json.dumps(
        [{**about, "count": curve.count, "points": len(curve.x)} for about, curve in curves],
        separators=(",", ":"),
    ).encode()
    pieces = [struct.pack("<I", len(head)), head]
    pieces.append(bytes(-(4 + len(head)) % 8))
    with np.errstate(over="ignore"):  # What float32 cannot hold is drawn as infinite.
        for _, curve in curves:
            values = np.concatenate([curve.last, curve.low, curve.high]).astype("<f4").tobytes()
            pieces += [curve.x.astype("<f8").tobytes(), values, bytes(-len(values) % 8)]
    return b"".join(pieces)


def unpack(body: bytes) -> list[tuple[dict[str, Any], Curve]]:
    """What `pack` made."""
    (length,) = struct.unpack_from("<I", body)
    place = 4 + length + -(4 + length) % 8
    found = []
    for about in json.loads(body[4 : 4 + length]):
        points = about["points"]
        x = np.frombuffer(body, "<f8", points, place)
        place += 8 * points
        last, low, high = np.frombuffer(body, "<f4", 3 * points, place).reshape(3, points)
        place += 12 * points + -(12 * points) % 8
        found.append((about, Curve(about["count"], x, last, low, high)))
    return found
