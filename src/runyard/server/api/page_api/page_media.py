"""What the page needs beside the files to show a run's media.

The client keeps it in its own part of the config, `_wandb`: which charts were made of which tables,
and the names of the classes in masks and boxes.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from runyard.server.api.page_api.page_answers import readable_project
from runyard.server.artifacts import artifacts, visibility
from runyard.server.history.reading.project_keys import runs_with_media
from runyard.server.http import arguments
from runyard.server.http.access import caller_of, readable_run, tracker_of
from runyard.server.http.answers import HttpError, answer
from runyard.server.http.routes import Endpoints
from runyard.server.people.permissions import RUNS, Caller, readable
from runyard.server.runs import custom_charts
from runyard.server.store.sql import Row

api = Endpoints("runs")

_MOST_RUNS = 1000
# Stands between the key of an image and that of its mask.
_BETWEEN = "_wandb_delimeter_"


@dataclass
class SomeRuns:
    runs: list[int] = field(default_factory=list)


@api.get(
    "/api/runs/{key:int}/media",
    RUNS,
    answer={"charts": dict[str, Any], "masks": dict[str, Any], "boxes": dict[str, Any]},
)
async def of_run(request: Request) -> Response:
    """How a run's media are shown: charts with their tables, names of the classes in masks."""
    row = await readable_run(request)
    config = json.loads(row["config"]).get("_wandb")
    settings = _mapping(_mapping(config).get("value", config))
    charts = _charts(_mapping(settings.get("visualize")))
    specs = await tracker_of(request).read(
        _specs, {chart["preset"] for chart in charts.values()}, caller_of(request)
    )
    return answer(
        {
            "charts": {
                name: {**chart, "spec": specs.get(chart["preset"])}
                for name, chart in charts.items()
            },
            "masks": _labels(_mapping(settings.get("mask/class_labels"))),
            "boxes": _labels(_mapping(settings.get("bounding_box/class_labels"))),
        }
    )


@api.post(
    "/api/projects/{entity}/{project}/media",
    RUNS,
    body=SomeRuns,
    answer={"runs": dict[str, list[int]]},
    tag="projects",
)
async def of_runs(request: Request) -> Response:
    """Which of these runs have media of which name, in the order that they are given."""
    project = await readable_project(request)
    body = await arguments.read(request, SomeRuns)
    if len(body.runs) > _MOST_RUNS:
        raise HttpError(400, f"more than {_MOST_RUNS} runs: ask for those that are shown")
    by_name = await tracker_of(request).read(runs_with_media, project["key"], body.runs)
    return answer({"runs": by_name})


@api.get("/api/artifacts/of-client", RUNS, query={"id": str}, answer={"key": int, "entity": str})
async def artifact_of_client(request: Request) -> Response:
    """The version that a logged table names by an id of the client's own."""
    client_id = request.query_params.get("id", "")
    row = await tracker_of(request).read(_by_client_id, client_id, caller_of(request))
    if row is None:
        raise HttpError(404, f"there is no artifact that its client calls {client_id[:20]!r}")
    return answer({"key": row["key"], "entity": row["entity"]})


def _by_client_id(db: sqlite3.Connection, client_id: str, caller: Any) -> Row | None:
    known, entities = artifacts.by_client_id(db, client_id), readable(caller)
    if known is None:
        return None
    if known["artifact"] is not None:
        row = visibility.artifact(db, known["artifact"], entities)
    else:
        row = visibility.latest(db, known["collection"], entities)
    return row if row is not None and row["state"] == artifacts.COMMITTED else None


def _charts(panels: dict[str, Any]) -> dict[str, Any]:
    charts = {}
    for key, panel in panels.items():
        settings = _mapping(_mapping(panel).get("panel_config"))
        preset = settings.get("panelDefId")
        if isinstance(preset, str):
            charts[key] = {
                "preset": preset,
                "fields": _mapping(settings.get("fieldSettings")),
                "strings": _mapping(settings.get("stringSettings")),
                "table": _table_key(settings) or f"{key}_table",
            }
    return charts


def _specs(db: sqlite3.Connection, presets: set[str], caller: Caller) -> dict[str, Any]:
    """What people have defined here; the page knows W&B's own presets."""
    return {preset: custom_charts.find(db, preset, caller) for preset in presets}


def _table_key(settings: dict[str, Any]) -> str | None:
    """The query is W&B's own; of it we need the name of the table alone."""
    if isinstance(settings.get("userQuery"), dict):
        for name, value in _arguments(settings["userQuery"].get("queryFields"), depth=0):
            if name == "tableKey" and isinstance(value, str):
                return value
    return None


def _arguments(fields: Any, depth: int) -> list[tuple[Any, Any]]:
    pairs: list[tuple[Any, Any]] = []
    for asked in fields if isinstance(fields, list) and depth < 5 else ():
        named = _mapping(asked).get("args")
        for argument in named if isinstance(named, list) else ():
            pairs.append((_mapping(argument).get("name"), _mapping(argument).get("value")))
        pairs += _arguments(_mapping(asked).get("fields"), depth + 1)
    return pairs


def _labels(settings: dict[str, Any]) -> dict[str, dict[str, Any]]:
    labels: dict[str, dict[str, Any]] = {}
    for joined, entry in settings.items():
        key, _, layer = joined.partition(_BETWEEN)
        labels.setdefault(key, {})[layer] = _mapping(_mapping(entry).get("value"))
    return labels


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
