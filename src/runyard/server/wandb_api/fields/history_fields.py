"""What a run logged, as GraphQL fields: sampled, in windows of steps, and which keys there are.

Rows of `history` and `events` travel as JSON inside of texts, where NaN stays NaN; `sampledHistory`
and `historyKeys` are JSON themselves.
"""

from __future__ import annotations

import json
from sqlite3 import Connection
from typing import Any

from runyard.server.history.history import EVENTS, HISTORY, count_rows, last_row
from runyard.server.history.reading import rows
from runyard.server.history.reading.history_keys import read_history_keys
from runyard.server.history.reading.rows import Window
from runyard.server.runs import states
from runyard.server.store.sql import Row
from runyard.server.wandb_api.fields import history_files
from runyard.server.wandb_api.graphql.inputs import Arguments
from runyard.server.wandb_api.graphql.request import Refusal, Request, Source

_SAMPLES, _MOST_SAMPLES = 500, 100_000
_FARTHEST = 2**53
_MOST_SPECS = 100


def in_run(request: Request, row: Row) -> Source:
    tracker, run = request.tracker, row["key"]

    async def history(arguments: Arguments) -> list[str]:
        samples = arguments.count("samples", _SAMPLES, _MOST_SAMPLES)
        if arguments.get("minStep") is None and arguments.get("maxStep") is None:
            return await tracker.read(_sampled, run, HISTORY, samples)
        low = _step(arguments, "minStep", 0)
        # Here the last step is the first that is not wanted.
        high = _step(arguments, "maxStep", _FARTHEST) - 1
        return await tracker.read(_between, run, Window(low, min(high, low + samples - 1)))

    async def events(arguments: Arguments) -> list[str]:
        samples = arguments.count("samples", _SAMPLES, _MOST_SAMPLES)
        return await tracker.read(_sampled, run, EVENTS, samples)

    async def sampled_history(arguments: Arguments) -> list[list[dict[str, Any]]]:
        specs = [_read_spec(text) for text in arguments.texts("specs")]
        if len(specs) > _MOST_SPECS:
            raise Refusal(f"specs has more than {_MOST_SPECS} entries")
        return [await tracker.read(_sampled_keys, run, spec) for spec in specs]

    async def history_keys(_arguments: Arguments) -> dict[str, Any] | None:
        history_files.note_scan(request, run)
        return await tracker.read(read_history_keys, run)

    async def parquet_history(_arguments: Arguments) -> Source:
        wants_file = history_files.wants_file(request, run)
        first = await tracker.read(rows.first_step, run, HISTORY)
        if first is not None and wants_file and row["state"] in states.ENDED:
            return {"parquetUrls": [history_files.address_of_file(request, run)], "liveData": []}
        # Live rows are read page by page.
        return {"parquetUrls": [], "liveData": [] if first is None else [{"_step": first}]}

    return {
        "history": history,
        "events": events,
        "sampledHistory": sampled_history,
        "historyKeys": history_keys,
        "parquetHistory": parquet_history,
        "systemMetrics": request.reads(_last_system_metrics, run),
        "eventsLineCount": request.reads(count_rows, run, EVENTS),
    }


def _sampled(db: Connection, run: int, stream: int, samples: int) -> list[str]:
    return [json.dumps(row) for row in rows.sample_rows(db, run, stream, samples)]


def _between(db: Connection, run: int, window: Window) -> list[str]:
    return [json.dumps(row) for row in rows.rows_between(db, run, HISTORY, window)]


def _sampled_keys(db: Connection, run: int, spec: Arguments) -> list[dict[str, Any]]:
    samples = spec.count("samples", _SAMPLES, _MOST_SAMPLES)
    window = None
    if spec.get("minStep") is not None or spec.get("maxStep") is not None:
        low, high = _step(spec, "minStep", 0), _step(spec, "maxStep", _FARTHEST)
        # Old clients ask for one step more than they want rows; it belongs to their next page.
        window = Window(low, min(high, low + samples - 1))
    names = spec.texts("keys")
    return rows.sample_keys(db, run, HISTORY, names, samples, window)


def _read_spec(text: str) -> Arguments:
    try:
        spec = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refusal(f"a spec is not JSON: {error}") from error
    if not isinstance(spec, dict):
        raise Refusal("a spec is not an object")
    return Arguments(spec)


def _step(arguments: Arguments, name: str, default: int) -> int:
    value = arguments.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > _FARTHEST:
        raise Refusal(f"{name} is not a step")
    return int(value)


def _last_system_metrics(db: Connection, run: int) -> str:
    line = last_row(db, run, EVENTS)
    try:
        row = json.loads(line or "{}")
    except ValueError:
        row = {}
    return json.dumps({name: row[name] for name in row if name.startswith("system.")})
