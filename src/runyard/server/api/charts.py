"""Curves for the page and for programs, packed: a head in JSON, then columns of numbers.

    4 bytes   length of the head
    head      JSON: `revision`, and `curves`: one entry a curve with its metric, its run or group,
              how many values it stands for, how many points it has and where its columns begin
    columns   x (float64); last, low, high and, of groups, deviation and runs (float32)

All numbers are little-endian; head and columns are padded to 8 bytes, so that a browser can lay
typed arrays over them. Columns that would be the same are sent once: the steps of a run, and the
band of a curve that shows every value (`low` and `high` are null).
"""

from __future__ import annotations

import json
import sqlite3
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from runyard.server.history.columns import Numbers
from runyard.server.history.history import STREAMS
from runyard.server.history.reading.curves import Curve, GroupCurve, combine, read_named_curves
from runyard.server.http import arguments
from runyard.server.http.access import caller_of, tracker_of
from runyard.server.http.answers import HttpError
from runyard.server.http.routes import BINARY, Endpoints
from runyard.server.people.permissions import RUNS, may_read
from runyard.server.runs import projects

api = Endpoints("live")

_MOST_POINTS, _MOST_RUNS, _MOST_METRICS = 100_000, 20_000, 200


@dataclass
class CurvesQuestion:
    """Which curves, of `runs` or of `groups` of runs: those of all runs if neither is named."""

    project: str
    metrics: list[str]
    runs: list[int] | None = None
    groups: list[list[int]] | None = None
    points: int = 1000
    x: str | None = None
    range: list[float] | None = None
    stream: str = "history"


@api.post("/api/curves", RUNS, body=CurvesQuestion, media=BINARY)
async def curves(request: Request) -> Response:
    """Metrics of many runs, or the means of groups of runs, thinned out: 4 bytes length, a JSON
    head padded to 8, then little-endian columns at the offsets that the head names (x float64,
    the others float32).
    """
    tracker = tracker_of(request)
    question = await _question(request)
    entity, _, name = question.project.partition("/")
    project = await tracker.read(projects.by_path, entity, name)
    if project is None or not may_read(caller_of(request), entity):
        raise HttpError(404, f"there is no project {question.project[:200]!r}")
    revision = tracker.changes.revision
    packed = await tracker.read(_packed, project["key"], question, revision)
    return Response(packed, media_type="application/octet-stream")


async def _question(request: Request) -> CurvesQuestion:
    question = await arguments.read(request, CurvesQuestion)
    if question.stream not in STREAMS:
        raise HttpError(400, "stream is `history` or `events`")
    if question.range is not None and len(question.range) != 2:
        raise HttpError(400, "range is a pair of numbers")
    if len(question.metrics) > _MOST_METRICS:
        raise HttpError(400, f"more than {_MOST_METRICS} metrics at once")
    if any(len(keys) > _MOST_RUNS for keys in (question.runs or (), *(question.groups or ()))):
        raise HttpError(400, f"more than {_MOST_RUNS} runs at once")
    question.points = min(max(1, question.points or 1000), _MOST_POINTS)
    return question


def _packed(
    connection: sqlite3.Connection, project: int, asked: CurvesQuestion, revision: int
) -> bytes:
    wanted = asked.runs
    if asked.groups is not None:
        wanted = [key for group in asked.groups for key in group]
    runs = _own_runs(connection, project, wanted)
    span = None if asked.range is None else (asked.range[0], asked.range[1])
    named = read_named_curves(
        connection, runs, STREAMS[asked.stream], asked.metrics, asked.points, asked.x, span
    )
    packing = Packing()
    with np.errstate(over="ignore"):  # What float32 cannot hold is drawn as infinite.
        for name in dict.fromkeys(asked.metrics):
            _pack_metric(packing, name, named.pop(name, {}), runs, asked)
    return packing.packed(revision)


def _pack_metric(
    packing: Packing, name: str, curves: dict[int, Curve], runs: list[int], asked: CurvesQuestion
) -> None:
    if asked.groups is None:
        for run in runs:
            if run in curves:
                packing.add_run(name, run, curves.pop(run))
        return
    for number, group in enumerate(asked.groups):
        mean = combine((curves[run] for run in group if run in curves), asked.points)
        if mean is not None:
            packing.add_group(name, number, mean)


def _own_runs(
    connection: sqlite3.Connection, project: int, keys: Sequence[int] | None
) -> list[int]:
    """Those of the project alone: keys of other people's runs are nobody's here."""
    if keys is None:
        rows = connection.execute(
            "SELECT key FROM runs WHERE project = ? ORDER BY key DESC LIMIT ?",
            (project, _MOST_RUNS),
        )
        return [row["key"] for row in rows]
    rows = connection.execute(
        "SELECT key FROM runs WHERE project = ? AND key IN (SELECT value FROM json_each(?))",
        (project, json.dumps(list(keys))),
    )
    there = {row["key"] for row in rows}
    return [key for key in dict.fromkeys(keys) if key in there]


class Packing:
    """Collects curves; `packed` is the answer's body."""

    def __init__(self) -> None:
        self._entries: list[dict[str, Any]] = []
        self._pieces: list[bytes] = []
        self._size = 0
        self._places: dict[bytes, int] = {}

    def add_run(self, metric: str, run: int, curve: Curve) -> None:
        is_all = len(curve.x) == curve.count
        self._entries.append(
            {
                "metric": metric,
                "run": run,
                "count": curve.count,
                "points": len(curve.x),
                "x": self._wide(curve.x),
                "last": self._narrow(curve.last),
                "low": None if is_all else self._narrow(curve.low),
                "high": None if is_all else self._narrow(curve.high),
            }
        )

    def add_group(self, metric: str, group: int, curve: GroupCurve) -> None:
        self._entries.append(
            {
                "metric": metric,
                "group": group,
                "count": curve.count,
                "points": len(curve.x),
                "x": self._wide(curve.x),
                "last": self._narrow(curve.mean),
                "low": self._narrow(curve.low),
                "high": self._narrow(curve.high),
                "deviation": self._narrow(curve.deviation),
                "runs": self._narrow(curve.runs),
            }
        )

    def packed(self, revision: int) -> bytes:
        head = json.dumps(
            {"revision": revision, "curves": self._entries}, separators=(",", ":")
        ).encode()
        padding = bytes(-(4 + len(head)) % 8)
        return b"".join([struct.pack("<I", len(head)), head, padding, *self._pieces])

    def _wide(self, numbers: Numbers) -> int:
        """Where the column begins; the metrics of a run mostly have the same steps."""
        data = numbers.astype("<f8").tobytes()
        place = self._places.get(data)
        if place is None:
            place = self._places[data] = self._add(data)
        return place

    def _narrow(self, numbers: Numbers) -> int:
        return self._add(numbers.astype("<f4").tobytes())

    def _add(self, data: bytes) -> int:
        place = self._size
        self._pieces += [data, bytes(-len(data) % 8)]
        self._size += len(data) + -len(data) % 8
        return place


@dataclass(frozen=True)
class Unpacked:
    """One curve of an answer: what the head says of it, and its columns by name."""

    about: dict[str, Any]
    columns: dict[str, Numbers]


def unpack(body: bytes) -> list[Unpacked]:
    """What `Packing` made."""
    (length,) = struct.unpack_from("<I", body)
    begin = 4 + length + -(4 + length) % 8
    return [
        Unpacked(
            about,
            {
                name: np.frombuffer(
                    body, "<f8" if name == "x" else "<f4", about["points"], begin + about[name]
                )
                for name in ("x", "last", "low", "high", "deviation", "runs")
                if about.get(name) is not None
            },
        )
        for about in json.loads(body[4 : 4 + length])["curves"]
    ]
