"""Reading is independent of storing: however rows came and are kept, they read as plain rows do.

Hypothesis makes up what happens to two runs and their forks: rows in batches of any size, sent
twice or late, joined or not, without the levels that an older server did not write; rewinds, forks,
restarts and syncs. Then everything that can be read is compared with `plain_rows`.

`RUNYARD_READING_EXAMPLES=10000` tries as many examples instead of a few dozen.
"""

from __future__ import annotations

import json
import math
import os
import sqlite3
from collections import Counter
from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, example, given, note, settings
from hypothesis import strategies as st

from runyard.server.api import history_api as row_pages
from runyard.server.history.history import HISTORY, count_rows, stream_of
from runyard.server.history.reading import rows
from runyard.server.history.reading.curves import read_all_curves, read_named_curves
from runyard.server.history.reading.history_keys import read_history_keys
from runyard.server.history.reading.metrics import read_metrics
from runyard.server.sweeps.ledger.measures import last_value, measure, read_reported
from runyard.server.sweeps.policy.rules import Aim, Rules
from runyard.server.tracker import Tracker
from tests.server.asgi import Client
from tests.server.plain_rows import (
    PlainRun,
    PlainTable,
    assert_stands_for,
    canonical,
    is_number,
    within,
)
from tests.server.reading_actions import NAMES, Action, Key, Yard, fraction, some_action

EXAMPLES = os.environ.get("RUNYARD_READING_EXAMPLES")

some_question = st.fixed_dictionaries(
    {
        "points": st.sampled_from([1, 1, 2, 3, 11, 500]),
        "samples": st.sampled_from([1, 2, 7, 1000]),
        "names": st.lists(st.sampled_from([*NAMES, "_step"]), min_size=1, max_size=2, unique=True),
        "span": st.tuples(fraction, fraction),
        "start": fraction,
    }
)


@settings(
    max_examples=int(EXAMPLES or 40),
    deadline=None,
    derandomize=EXAMPLES is None,
    database=None,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
@example(
    # All that is left of the second run has no step.
    actions=[
        ("log", 1, 5, 1, [Key(("loss",), every=1, phase=0, odd=1, odd_every=9)], "some", False),
        ("rewind", 1, 0.0),
    ],
    question={"points": 1, "samples": 1, "names": ["_step"], "span": (0.0, 0.0), "start": 0.0},
)
@example(
    # Its last step is infinite.
    actions=[
        ("log", 0, 150, 40, [Key(("loss",), 1, phase=0, odd=1, odd_every=9)], "all", False),
        ("log", 0, 5, 40, [Key(("loss",), 1, phase=0, odd=1, odd_every=9)], "odd", False),
    ],
    question={"points": 1, "samples": 1, "names": ["loss"], "span": (0.0, 0.0), "start": 0.0},
)
@given(actions=st.lists(some_action, min_size=3, max_size=12), question=some_question)
def test_whatever_happened_reads_as_plain_rows_do(
    client: Client, tracker: Tracker, actions: list[Action], question: dict[str, Any]
) -> None:
    yard = Yard(client, tracker)
    for action in actions:
        yard.do(action)
        note(f"{action}: {[len(plain.rows) for plain in yard.plain.values()]} rows")
    tables = {run: PlainTable(plain.rows) for run, plain in yard.plain.items()}
    yard.read(lambda connection: check_runs(connection, tables, **question))
    yard.read(lambda connection: check_archives(connection, yard.plain))
    yard.check_names()


def check_runs(
    connection: sqlite3.Connection,
    tables: dict[int, PlainTable],
    points: int,
    samples: int,
    names: list[str],
    span: tuple[float, float],
    start: float,
) -> None:
    longest = max(len(plain.rows) for plain in tables.values())
    low, high = sorted(int(edge * longest) for edge in span)
    for run, plain in tables.items():
        assert count_rows(connection, run, HISTORY) == len(plain.rows)
        check_pages(connection, run, plain, names, int(start * longest))
        check_samples(connection, run, plain, names, samples, rows.Window(low, high))
        check_metrics(connection, run, plain, points)
        check_measures(connection, run, plain)
        check_history_keys(connection, run, plain)
    for x in (None, names[0]):
        check_charts(connection, tables, points, x, None)
        check_charts(connection, tables, points, x, (low, high))


def assert_same(found: Any, expected: Any) -> None:
    assert canonical(found) == canonical(expected)


def check_pages(
    connection: sqlite3.Connection, run: int, plain: PlainTable, names: list[str], start: int
) -> None:
    every = dict(enumerate(plain.rows))
    for metrics, content in (([], every), (names, plain.only(names))):
        page = row_pages._page(connection, run, HISTORY, start, metrics)
        assert_same(as_rows(page), [{"_row": n, **row} for n, row in content.items() if n >= start])


def check_archives(connection: sqlite3.Connection, plain_runs: dict[int, PlainRun]) -> None:
    for run, plain in plain_runs.items():
        for number, gone in enumerate(plain.archives, 1):
            page = row_pages._page(connection, run, stream_of(number, HISTORY), 0, [])
            kept = as_rows(page)
            numbers = [row.pop("_row") for row in kept]
            # What is put aside may keep the numbers that it had in its run.
            assert numbers == sorted(set(numbers))
            assert_same(kept, gone)


def as_rows(page: str) -> list[Any]:
    return [json.loads(line) for line in page.splitlines()]


def check_samples(
    connection: sqlite3.Connection,
    run: int,
    plain: PlainTable,
    names: list[str],
    samples: int,
    window: rows.Window,
) -> None:
    def spread(some: Sequence[Any]) -> list[Any]:
        return [some[number] for number in rows.spread(len(some), samples)]

    assert_same(rows.sample_rows(connection, run, HISTORY, samples), spread(plain.rows))
    inside = plain.between(window.low, window.high)
    between = rows.rows_between(connection, run, HISTORY, window)
    assert_same(between, [plain.rows[line] for line in inside])
    having = plain.having(names)
    sampled = rows.sample_keys(connection, run, HISTORY, names, samples)
    assert_same(sampled, spread(list(having.values())))
    sampled = rows.sample_keys(connection, run, HISTORY, names, samples, window)
    assert_same(sampled, spread([row for line, row in having.items() if line in set(inside)]))
    finite = [int(step) for _, step in plain.steps() if math.isfinite(step)]
    first = rows.first_step(connection, run, HISTORY)
    assert first == (finite[0] if finite else None)


def check_metrics(connection: sqlite3.Connection, run: int, plain: PlainTable, points: int) -> None:
    metrics = read_metrics(connection, run, points)
    assert [metric["key"] for metric in metrics] == plain.metrics()
    for metric in metrics:
        values = [value for _, value in plain.numbers(metric["key"])]
        finite = [value for value in values if math.isfinite(value)]
        assert metric["count"] == len(values)
        assert metric["minimum"] == min(finite, default=None)
        assert metric["maximum"] == max(finite, default=None)
        assert_same(metric["last"], values[-1])
    for name, curve in read_all_curves(connection, run, HISTORY, points).items():
        assert_stands_for(curve, plain.curve(name), points)


def check_charts(
    connection: sqlite3.Connection,
    tables: dict[int, PlainTable],
    points: int,
    x: str | None,
    span: tuple[int, int] | None,
) -> None:
    curves = read_named_curves(connection, list(tables), HISTORY, NAMES, points, x, span)
    for name in NAMES:
        for run, plain in tables.items():
            expected = plain.curve(name, x or "_step")
            shown = expected if span is None else within(expected, *span)
            curve = curves.get(name, {}).get(run)
            assert (curve is not None) == bool(shown)
            if curve is not None:
                assert curve.count == len(expected)
                assert_stands_for(curve, shown, points)


def check_measures(connection: sqlite3.Connection, run: int, plain: PlainTable) -> None:
    # What the summary says is another source; here only history speaks.
    row: Any = {"key": run, "summary": "{}"}
    for name in NAMES:
        results = plain.results(name)
        values = [value for _, value in results]
        for maximize, best in ((False, min), (True, max)):
            measured = measure(connection, row, Rules(aims=(Aim(name, maximize),)))
            assert measured == ({name: best(values)} if values else {})
        assert last_value(connection, run, {}, name) == (values[-1] if values else None)
        reported = read_reported(connection, run, 1, "running", name, None)
        counted = enumerate(results, 1)
        assert reported.curve == [(line, float(n), value) for n, (line, value) in counted]
        epochs = dict(plain.results("epoch"))
        reported = read_reported(connection, run, 1, "running", name, "epoch")
        over = [(line, epochs[line], value) for line, value in results if line in epochs]
        assert (reported.curve, reported.rows) == (over, len(plain.rows))


def check_history_keys(connection: sqlite3.Connection, run: int, plain: PlainTable) -> None:
    found = read_history_keys(connection, run)
    if not plain.rows:
        assert found is None
        return
    assert found is not None
    assert sorted(found["keys"]) == sorted(plain.paths)
    steps = [step for _, step in plain.steps() if math.isfinite(step)]
    assert found["lastStep"] == int(max(steps, default=len(plain.rows) - 1))
    for name, about in found["keys"].items():
        types = {entry["type"]: entry["count"] for entry in about["typeCounts"]}
        assert types == Counter(type_of(value) for _, value in plain.values(name))
        numbers = [value for _, value in plain.numbers(name)]
        last = about["previousValue"]
        assert_same(None if last is None else float(last), numbers[-1] if numbers else None)
        rises = all(map(math.isfinite, numbers)) and numbers == sorted(numbers)
        # Of many values only stretches are looked at: a fall inside of one may be missed.
        if len(numbers) <= 100 or rises:
            assert about["monotonic"] == (rises and bool(numbers))


def type_of(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if is_number(value) or isinstance(value, int):
        return "number"
    if isinstance(value, dict):
        return str(value["_type"])
    if isinstance(value, str):
        return "string"
    return "list" if isinstance(value, list) else "nil"
