"""Filters and orders over runs: read, applied by Python, and applied by SQL where it can."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runyard.server.history.reading.dotted_names import MISSING
from runyard.server.listing.field_memory import FieldMemory
from runyard.server.listing.field_paths import JSON, TIME, Field, find_field, look_up
from runyard.server.listing.filters import BadFilter, fields_of, narrow, predicate, read_filter
from runyard.server.listing.orders import (
    BadOrder,
    Ordered,
    Place,
    rank_of,
    read_cursor,
    read_order,
    write_cursor,
)
from runyard.server.listing.run_listing import _records
from runyard.server.listing.run_lists import Filter, RunLists
from runyard.server.store.database import Database


class Run:
    """A run as filters see it."""

    def __init__(self, **content: Any) -> None:
        self._content = content

    def get(self, field: Field) -> Any:
        if field.kind == JSON:
            return look_up(self._content.get(field.column, {}), field)
        value = self._content.get(field.column)
        if value is None:
            return MISSING
        return int(value) if field.kind == TIME else value


RUN = Run(
    id="abc123",
    name="seed-7",
    state="finished",
    tags=["best", "paper"],
    created_at=1_767_225_600.75,  # 2026-01-01T00:00:00.75
    config={
        "lr": {"value": 0.1, "desc": None},
        "opt": {"value": {"name": "adam", "betas": [0.9, 0.999]}},
        "flag": {"value": True},
        "none": {"value": None},
        "dotted.key": {"value": 3},
        "value": {"value": {"value": 5}},
        "plain": 4,
    },
    summary={"loss": 0.5, "acc": {"max": 0.9}, "nan": float("nan"), "deep": {"a.b": 2}},
)


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ({}, True),
        ({"state": "finished"}, True),
        ({"state": "running"}, False),
        ({"name": "abc123", "displayName": "seed-7"}, True),
        ({"display_name": {"$regex": r"^seed-\d$"}}, True),
        ({"display_name": {"$regex": "SEED", "$options": "i"}}, True),
        ({"display_name": {"$not": {"$regex": "^seed"}}}, False),
        ({"group": None}, True),
        ({"group": {"$exists": False}}, True),
        ({"group": {"$ne": "a"}}, True),
        ({"tags": "best"}, True),
        ({"tags": {"$in": ["worst", "paper"]}}, True),
        ({"tags": {"$nin": ["best"]}}, False),
        ({"tags": {"$all": ["best", "paper"]}}, True),
        ({"tags": ["best", "paper"]}, True),
        ({"config.lr": 0.1}, True),
        ({"config.lr.value": {"$gte": 0.1, "$lt": 0.2}}, True),
        ({"config.lr": {"$gt": "0"}}, False),
        ({"config.opt.name": "adam"}, True),
        ({"config.opt.value.name": {"$in": ["sgd", "adam"]}}, True),
        ({"config.opt.betas": 0.9}, True),
        ({"config.opt.betas.1": 0.999}, True),
        ({"config.flag": True}, True),
        ({"config.flag": 1}, False),
        ({"config.none": None}, True),
        ({"config.none": {"$exists": True}}, True),
        ({"config.never": {"$exists": True}}, False),
        ({"config.never": None}, True),
        ({"config.dotted.key": 3}, True),
        ({"config.value.value.value": 5}, True),
        ({"config.plain": {"$gt": 3}}, True),
        ({"summary_metrics.loss": {"$lte": 0.5}}, True),
        ({"summary_metrics.acc.max": {"$gt": 0.8}}, True),
        ({"summaryMetrics.deep.a.b": 2}, True),
        ({"summary_metrics.nan": float("nan")}, True),
        ({"summary_metrics.nan": {"$gt": 0}}, False),
        ({"created_at": "2026-01-01T00:00:00"}, True),
        ({"createdAt": {"$gt": "2026-01-01T00:00:00"}}, False),
        ({"created_at": {"$gte": "2026-01-01T00:00:00Z", "$lt": "2026-01-02"}}, True),
        ({"created_at": {"$lt": 1_767_225_601_000}}, True),
        ({"$or": [{"state": "running"}, {"config.lr": {"$lt": 1}}]}, True),
        ({"$nor": [{"state": "running"}, {"config.lr": {"$lt": 1}}]}, False),
        ({"$not": {"state": "running"}}, True),
        ({"$and": [{"$or": [{"name": "x"}, {"name": "abc123"}]}, {"tags": "best"}]}, True),
        ({"$or": []}, False),
    ],
)
def test_what_passes(text: Mapping[str, Any], passes: bool) -> None:
    assert predicate(read_filter(json.dumps(text)))(RUN) is passes


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"stat": 1}', "did you mean state?"),
        ('{"nonsense": 1}', "no field 'nonsense'"),
        ('{"state": {"$like": "a"}}', "'$like' is not an operator"),
        ('{"$xor": []}', "'$xor' is not an operator"),
        ('{"$and": {}}', "$and takes a list"),
        ('{"tags": {"$in": "a"}}', "$in takes a list"),
        ('{"created_at": {"$gt": "yesterday"}}', "not a time like"),
        ('{"state": {"$regex": "("}}', "missing )"),
        ("[1]", "a filter is an object"),
        ("{", "not JSON"),
        ("[" * 10_000, "not JSON"),
        ('{"$not":' * 60 + "{}" + "}" * 60, "nested too deep"),
        (json.dumps({"config." + "a." * 30 + "a": 1}), "more than 20 parts"),
        (json.dumps({"$or": [{"name": "a"}] * 3_000}), "more than 2000 tests"),
        (json.dumps({"$or": [{"name": {"$regex": "a"}}] * 51}), "more than 50 patterns"),
    ],
)
def test_a_bad_filter_is_refused_in_words(text: str, says: str) -> None:
    with pytest.raises(BadFilter) as caught:
        read_filter(text)
    assert says in str(caught.value)


_SCALARS = st.sampled_from([None, True, False, 0, 1, 2.5, "a", "b", "running", ""])
_TEXTS = st.sampled_from(["state", "group", "name", "jobType", "username"])
_TESTS = st.one_of(
    st.tuples(_TEXTS, _SCALARS),
    st.tuples(
        st.one_of(_TEXTS, st.sampled_from(["config.x", "config.x.y", "tags"])),
        st.one_of(
            st.tuples(st.sampled_from(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]), _SCALARS),
            st.tuples(st.sampled_from(["$in", "$nin"]), st.lists(_SCALARS, max_size=3)),
            st.tuples(st.just("$exists"), st.booleans()),
            st.tuples(st.just("$regex"), st.sampled_from(["a", "^b$", "run.*g"])),
        ).map(lambda pair: {pair[0]: pair[1]}),
    ),
    st.tuples(
        st.sampled_from(["created_at", "heartbeatAt"]),
        st.tuples(
            st.sampled_from(["$eq", "$gt", "$gte", "$lt", "$lte"]),
            st.sampled_from([0, 1, 2, "1970-01-01T00:00:01"]),
        ).map(lambda pair: {pair[0]: pair[1]}),
    ),
).map(lambda pair: {pair[0]: pair[1]})
_FILTERS = st.recursive(
    _TESTS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: {"$and": parts}),
        st.lists(inner, max_size=3).map(lambda parts: {"$or": parts}),
        st.lists(inner, min_size=1, max_size=2).map(lambda parts: {"$nor": parts}),
        inner.map(lambda part: {"$not": part}),
    ),
    max_leaves=6,
)
_VALUES = st.one_of(
    _SCALARS, st.lists(_SCALARS, max_size=2), st.fixed_dictionaries({"y": _SCALARS})
)
_RUNS = st.lists(
    st.fixed_dictionaries(
        {
            "state": st.sampled_from(["running", "finished", "a"]),
            "group": st.sampled_from([None, "a", "b", ""]),
            "job_type": st.sampled_from([None, "a"]),
            "created_at": st.sampled_from([0.0, 1.0, 1.7, 2.0]),
            "heartbeat_at": st.sampled_from([None, 1.5, 3.0]),
            "config": st.one_of(st.just({}), _VALUES.map(lambda value: {"x": {"value": value}})),
            "tags": st.lists(st.sampled_from(["a", "b"]), max_size=2),
        }
    ),
    max_size=6,
)


def _store(database: Database, runs: list[dict[str, Any]]) -> None:
    def change(connection: Any) -> None:
        connection.execute(
            "INSERT OR IGNORE INTO users (key, name, created_at) VALUES (1, 'ada', 0)"
        )
        connection.execute(
            "INSERT OR IGNORE INTO projects (key, entity, name, created_at) "
            "VALUES (1, 'ada', 'birds', 0)"
        )
        connection.execute("DELETE FROM runs")
        for number, run in enumerate(runs):
            kept = {**run, "config": json.dumps(run["config"]), "tags": json.dumps(run["tags"])}
            kept |= {"id": f"r{number}", "name": f"n{number}", "project": 1, "user": 1}
            names = ", ".join(f'"{name}"' for name in kept)
            marks = ", ".join("?" * len(kept))
            connection.execute(
                f"INSERT INTO runs ({names}) VALUES ({marks})",
                list(kept.values()),
            )

    database.write(change).result()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_RUNS, _FILTERS)
def test_sql_and_python_agree(
    database: Database, runs: list[dict[str, Any]], asked: Mapping[str, Any]
) -> None:
    _store(database, runs)
    condition = read_filter(json.dumps(asked))
    narrowed, passes = narrow(condition), predicate(condition)
    fields = fields_of(condition)

    def look(connection: Any) -> tuple[set[int], set[int]]:
        everything = narrow(read_filter(None))
        by_python = {
            record.key
            for record in _records(connection, FieldMemory(), 1, everything, fields, None)
            if passes(record)
        }
        by_sql = {
            record.key for record in _records(connection, FieldMemory(), 1, narrowed, set(), None)
        }
        return by_python, by_sql

    by_python, by_sql = database.read(look).result()
    assert by_sql >= by_python
    if narrowed.exact:
        assert by_sql == by_python


_ORDERS = st.sampled_from(
    ["+created_at", "-created_at", "-heartbeat_at", "+state", "-name", "group", "-group",
     "+config.x", "-config.x.value", "-summary_metrics.never", "-tags"]
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_RUNS, _FILTERS, _ORDERS, st.integers(1, 4))
def test_pages_hold_each_run_once_and_in_order(
    database: Database, runs: list[dict[str, Any]], asked: Mapping[str, Any], text: str, size: int
) -> None:
    _store(database, runs)
    chosen, order = Filter("", read_filter(json.dumps(asked))), read_order(text)

    def walk(connection: Any, size: int) -> list[str]:
        lists = RunLists(database.changes, FieldMemory())
        found: list[str] = []
        after = None
        while True:
            page = lists.read_page(connection, 1, chosen, order, after, size)
            found += [row["id"] for row, _ in page.runs]
            if not page.more:
                assert len(found) == lists.count(connection, 1, chosen)
                return found
            after = read_cursor(write_cursor(page.runs[-1][1]))

    at_once = database.read(lambda connection: walk(connection, 1_000)).result()
    in_pages = database.read(lambda connection: walk(connection, size)).result()
    assert in_pages == at_once
    assert len(set(at_once)) == len(at_once)


def test_what_is_missing_comes_last_either_way() -> None:
    places = [Place(rank_of(value), key) for key, value in enumerate([3, None, 1, MISSING, 2])]
    assert [place.key for place in Ordered(places).page(None, 9, descending=False)] == [
        2,
        4,
        0,
        1,
        3,
    ]
    assert [place.key for place in Ordered(places).page(None, 9, descending=True)] == [
        0,
        4,
        2,
        3,
        1,
    ]


def test_numbers_come_before_texts_and_odd_numbers_last() -> None:
    values = ["b", 2, float("inf"), float("nan"), [1], True, 10**30, "a"]
    places = [Place(rank_of(value), key) for key, value in enumerate(values)]
    ordered = [values[place.key] for place in Ordered(places).page(None, 9, descending=False)]
    assert ordered[:6] == [True, 2, 10**30, "a", "b", [1]]
    assert ordered[6] == float("inf"), "nobody's best, in either order"


@pytest.mark.parametrize(
    "cursor", ["x", "null", '[null, "a"]', '[[0, "a"], 1]', "é", "[[[]", "[" * 100_000]
)
def test_a_made_up_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(BadOrder):
        read_cursor(cursor)


def test_an_unknown_order_is_refused_with_the_nearest() -> None:
    with pytest.raises(BadOrder, match=r"did you mean createdAt\?"):
        read_order("-created")
    assert read_order(None).field.column == "created_at"
    assert find_field("job_type").column == find_field("jobType").column
