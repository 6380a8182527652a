"""Charts that people define: who may draw with them, and what is refused."""

from __future__ import annotations

import json
import sqlite3

import pytest

from runyard.server.people.permissions import Caller
from runyard.server.runs import custom_charts
from runyard.server.runs.custom_charts import PRIVATE, PUBLIC, BadChart
from runyard.server.store.migrations import migrate
from runyard.server.store.names import BadName

ADA, BOB = Caller(1, "ada"), Caller(2, "bob", teams=frozenset({"crew"}))
BARS = {"mark": "bar"}


@pytest.fixture
def db() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    migrate(connection)
    return connection


def put(db: sqlite3.Connection, entity: str, name: str, access: str, spec: str) -> None:
    custom_charts.put(db, entity, name, title="", access=access, spec=spec, now=0.0)


def test_a_private_chart_is_for_its_entity_and_a_public_one_for_all(db: sqlite3.Connection) -> None:
    put(db, "crew", "bars", PRIVATE, json.dumps(BARS))
    put(db, "ada", "bars", PUBLIC, json.dumps(BARS))
    assert custom_charts.find(db, "crew/bars", BOB) == BARS
    assert custom_charts.find(db, "crew/bars", ADA) is None
    assert custom_charts.find(db, "ada/bars", BOB) == BARS
    assert custom_charts.find(db, "wandb/line/v0", ADA) is None


def test_a_chart_of_the_same_name_takes_its_place(db: sqlite3.Connection) -> None:
    put(db, "ada", "bars", PUBLIC, json.dumps(BARS))
    put(db, "ada", "bars", PRIVATE, json.dumps({"mark": "line"}))
    assert custom_charts.find(db, "ada/bars", ADA) == {"mark": "line"}
    assert custom_charts.find(db, "ada/bars", BOB) is None


@pytest.mark.parametrize(
    ("access", "spec", "said"),
    [
        (PRIVATE, "no", "no JSON"),
        (PRIVATE, "[1]", "begin with {"),
        (PRIVATE, '{"a":' * 100_000, "no JSON"),
        (PRIVATE, "x" * 500_001, "500,001 characters"),
        ("SECRET", "{}", "choose private or public"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    db: sqlite3.Connection, access: str, spec: str, said: str
) -> None:
    with pytest.raises(BadChart, match=said):
        put(db, "ada", "bars", access, spec)


def test_a_name_is_one_part_of_an_address(db: sqlite3.Connection) -> None:
    with pytest.raises(BadName):
        put(db, "ada", "two/parts", PRIVATE, "{}")
