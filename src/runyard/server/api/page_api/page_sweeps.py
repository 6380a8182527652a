"""A sweep for its page: progress, trials as columns, the space, what matters, who works on it."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from runyard.search import portrait
from runyard.search.importance import FEWEST_TRIALS, Importance, front, importances
from runyard.search.portrait import Drawn
from runyard.search.space import MISSING, Leaf, look_up
from runyard.search.sweep import Sweep
from runyard.search.tasks import COMMAND_LINE, NUMBER
from runyard.server.api.page_api.page_answers import not_changed, plain, send_json, tag_of
from runyard.server.api.sweep_json import sweep_json
from runyard.server.http import arguments
from runyard.server.http.access import readable_sweep, tracker_of
from runyard.server.http.answers import HttpError
from runyard.server.http.routes import Endpoints
from runyard.server.listing.field_paths import find_field
from runyard.server.listing.run_listing import read_columns
from runyard.server.people.permissions import RUNS
from runyard.server.store.changes import Kind
from runyard.server.store.sql import Row
from runyard.server.sweeps.ledger import sweeps, trials
from runyard.server.sweeps.policy.rules import Rules
from runyard.shapes import sweeps as shapes
from runyard.vocabulary import RESULT_STATES

api = Endpoints("sweeps")

_SHOWN = (Kind.SWEEP, Kind.TRIAL, Kind.AGENT)
_TOLD = (
    "number", "id", "name", "run", "state", "cause", "attempts", "host", "started_at", "ended_at",
    "began_at", "seconds", "exit_code", "ended",
)  # fmt: skip
# Parameters of a list of command lines that are no settings.
_HIDDEN = (NUMBER, COMMAND_LINE)


@api.get("/api/sweeps/{key:int}/columns", RUNS, query={"since": int}, answer=shapes.SweepColumns)
async def show_columns(request: Request) -> Response:
    """A sweep for drawing: trials as columns, places in the space, front and convergence; with
    `since`, the trials that changed.
    """
    row = await readable_sweep(request)
    tracker = tracker_of(request)
    tag = tag_of(request, tracker.changes.of_project(row["project"], _SHOWN))
    if (known := not_changed(request, tag)) is not None:
        return known
    since = arguments.number(request, "since")
    revision = tracker.changes.revision
    news = None if since is None else tracker.changes.since(since, (Kind.TRIAL,))
    changed = (
        None if news is None else {change.detail for change in news if change.key == row["key"]}
    )
    plan = await tracker.sweeps.plan_of(row)
    content = await tracker.read(_columns, row["key"], plan.sweep, changed, time.time())
    runs = [run for run in content["trials"]["run"] if run is not None]
    fields = [find_field(f"summary.{metric['name']}") for metric in content["metrics"]]
    columns, values = await tracker.read(
        read_columns, tracker.remembered, row["project"], fields, runs
    )
    last = {
        metric["name"]: dict(zip(columns["key"], map(plain, column), strict=True))
        for metric, column in zip(content["metrics"], values, strict=True)
    }
    content["last"] = {
        name: [by_run.get(run) for run in content["trials"]["run"]] for name, by_run in last.items()
    }
    return await send_json(
        request, {"revision": revision, "whole": changed is None, **content}, tag
    )


@api.get("/api/sweeps/{key:int}/importance", RUNS, query={"metric": str}, answer=shapes.Importance)
async def show_importance(request: Request) -> Response:
    """How much each parameter matters for a metric."""
    row = await readable_sweep(request)
    tracker = tracker_of(request)
    tag = tag_of(request, tracker.changes.of_project(row["project"], (Kind.TRIAL,)))
    if (known := not_changed(request, tag)) is not None:
        return known
    plan = await tracker.sweeps.plan_of(row)
    metric = request.query_params.get("metric") or (
        plan.rules.aims[0].name if plan.rules.aims else None
    )
    if metric is None:
        raise HttpError(404, "the sweep has no metric: which one is to be explained?")
    rows = await tracker.read(trials.of_sweep, row["key"])
    aim = next((aim for aim in plan.rules.aims if aim.name == metric), None)
    maximize = aim is not None and aim.lowered(1.0) < 0
    content = await asyncio.to_thread(_importance, rows, plan.sweep, metric, maximize)
    return await send_json(request, content, tag)


@dataclass(frozen=True)
class _Parameter:
    """A parameter, what it was in each trial, and where that stands on its axis."""

    drawn: Drawn
    values: list[Any]
    places: list[float | None]


def _columns(
    connection: sqlite3.Connection,
    key: int,
    sweep: Sweep,
    changed: set[int] | None,
    now: float,
) -> dict[str, Any]:
    row = sweeps.get(connection, key)
    rules = sweeps.rules_of(row)
    rows = trials.of_sweep(connection, key)
    measured = [json.loads(trial["measured"]) if trial["measured"] else {} for trial in rows]
    names = list(dict.fromkeys([*(aim.name for aim in rules.aims), *_names(measured)]))
    settings = [json.loads(trial["settings"]) for trial in rows]
    parameters = _parameters(sweep, settings)
    shown = [
        place for place, trial in enumerate(rows) if changed is None or trial["number"] in changed
    ]
    return {
        "sweep": sweep_json(connection, row, now),
        "text": row["text"],
        "metrics": [
            {
                "name": aim.name,
                "goal": "maximize" if aim.maximize else "minimize",
                "target": aim.target,
            }
            for aim in rules.aims
        ],
        "limits": [
            {"name": limit.name, "bound": limit.bound, "above": limit.above}
            for limit in rules.limits
        ],
        "parameters": [_drawn_json(parameter.drawn) for parameter in parameters],
        "trials": {name: [rows[place][name] for place in shown] for name in _TOLD},
        "values": {
            parameter.drawn.name: [plain(parameter.values[place]) for place in shown]
            for parameter in parameters
        },
        "places": {
            parameter.drawn.name: [parameter.places[place] for place in shown]
            for parameter in parameters
        },
        "measured": {name: [plain(measured[place].get(name)) for place in shown] for name in names},
        "front": _front(rows, measured, rules),
        "convergence": _convergence(rows, measured, rules),
    }


def _names(measured: Sequence[Mapping[str, Any]]) -> list[str]:
    return sorted({name for results in measured for name in results})


def _parameters(sweep: Sweep, settings: Sequence[Mapping[str, Any]]) -> list[_Parameter]:
    """The searched ones, then whatever else differs between trials."""
    leaves = [] if sweep.options.tasks else portrait.leaves_of(sweep.space)
    parameters = [_searched(leaf, settings) for leaf in leaves]
    known = {leaf.path[0] for leaf in leaves}
    others = dict.fromkeys(name for setting in settings for name in setting if name not in known)
    for name in others:
        values = [setting.get(name) for setting in settings]
        is_flat = all(not isinstance(value, dict | list) for value in values)
        differs = len({str(value) for value in values}) > 1
        if name not in _HIDDEN and is_flat and differs:
            drawn = portrait.draw_values(name, values)
            places = [portrait.place_among(drawn, value) for value in values]
            parameters.append(_Parameter(drawn, values, places))
    return parameters


def _searched(leaf: Leaf, settings: Sequence[Mapping[str, Any]]) -> _Parameter:
    values = [look_up(setting, leaf.path) for setting in settings]
    return _Parameter(
        portrait.draw_leaf(leaf),
        [None if value is MISSING else value for value in values],
        [portrait.place_in(leaf, setting) for setting in settings],
    )


def _drawn_json(drawn: Drawn) -> dict[str, Any]:
    return {
        "name": drawn.name,
        "categories": drawn.categories,
        "said": drawn.said,
        "searched": drawn.is_searched,
        "ticks": [{"place": tick.place, "value": plain(tick.value)} for tick in drawn.ticks],
    }


def _front(rows: Sequence[Row], measured: Sequence[Mapping[str, float]], rules: Rules) -> list[int]:
    """Numbers of the trials on the Pareto front; empty for a single metric."""
    if len(rules.aims) < 2 or not rows:
        return []
    values = np.array(
        [
            [
                aim.lowered(measures[aim.name])
                if aim.name in measures
                and trial["state"] in RESULT_STATES
                and rules.keeps_limits(measures)
                else np.nan
                for aim in rules.aims
            ]
            for trial, measures in zip(rows, measured, strict=True)
        ]
    )
    return [rows[place]["number"] for place in np.flatnonzero(front(values)).tolist()]


def _convergence(
    rows: Sequence[Row], measured: Sequence[Mapping[str, float]], rules: Rules
) -> list[dict[str, Any]]:
    """Each trial that was better than all before it, in the order of ending."""
    if not rules.aims:
        return []
    aim = rules.aims[0]
    ended = sorted(
        (
            (trial["ended"], trial["number"], measures[aim.name], trial["ended_at"])
            for trial, measures in zip(rows, measured, strict=True)
            if trial["ended"] is not None and trial["score"] is not None and aim.name in measures
        )
    )
    best, improvements = None, []
    for order, (_, number, value, ended_at) in enumerate(ended, 1):
        if best is None or aim.lowered(value) < aim.lowered(best):
            best = value
            improvements.append({"order": order, "number": number, "value": value, "at": ended_at})
    return improvements


def _importance(rows: Sequence[Row], sweep: Sweep, metric: str, maximize: bool) -> dict[str, Any]:
    measured = [json.loads(trial["measured"]) if trial["measured"] else {} for trial in rows]
    chosen = [
        place
        for place, trial in enumerate(rows)
        if trial["state"] in RESULT_STATES and metric in measured[place]
    ]
    settings = [json.loads(rows[place]["settings"]) for place in chosen]
    parameters = _parameters(sweep, settings)
    content = {"metric": metric, "trials": len(chosen), "needed": FEWEST_TRIALS}
    if not parameters or len(chosen) < FEWEST_TRIALS:
        return {**content, "explained": None, "parameters": []}
    categories = [parameter.drawn.categories for parameter in parameters]
    places = np.array(
        [
            [np.nan if place is None else place for place in parameter.places]
            if not parameter.drawn.categories
            else _indices(parameter)
            for parameter in parameters
        ],
        dtype=np.float64,
    ).T
    values = np.array([measured[place][metric] for place in chosen], dtype=np.float64)
    shares = importances(places, categories, values, maximize=maximize)
    if shares is None:
        return {**content, "explained": None, "parameters": []}
    pairs = sorted(zip(parameters, shares, strict=True), key=lambda pair: -pair[1].share)
    return {
        **content,
        "explained": min(1.0, sum(share.share for share in shares)),
        "parameters": [_importance_json(parameter.drawn.name, share) for parameter, share in pairs],
    }


def _indices(parameter: _Parameter) -> list[float]:
    count = parameter.drawn.categories
    return [
        np.nan if place is None else round(place * (count - 1)) if count > 1 else 0
        for place in parameter.places
    ]


def _importance_json(name: str, importance: Importance) -> dict[str, Any]:
    return {
        "name": name,
        "share": importance.share,
        "is_sure": importance.is_sure,
        "best": importance.best,
    }
