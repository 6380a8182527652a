"""Rows that a rewind or a fork keeps behind ones which it takes out: numbered without a gap."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from runyard.server.tracker import Tracker
from tests.server.asgi import Client
from tests.server.plain_rows import PlainTable
from tests.server.reading_actions import Action, Key, Yard
from tests.server.test_reading_model import check_archives, check_runs

QUESTION: dict[str, Any] = {
    "points": 3, "samples": 7, "names": ["loss"], "span": (0.0, 1.0), "start": 0.0,
}  # fmt: skip
LOSS = [Key(("loss",), 1, 0, None, 1000)]


@pytest.mark.parametrize(("batch", "count", "joined"), list(product([1, 1000], [1, 12], [0, 3, 5])))
def test_rows_without_a_step_stay_and_move_up(
    client: Client, tracker: Tracker, batch: int, count: int, joined: int
) -> None:
    yard = Yard(client, tracker)
    story: list[Action] = [
        ("log", 0, 5, batch, LOSS, "all", bool(joined & 1)),
        ("log", 0, count, batch, LOSS, "some", bool(joined & 2)),
        ("log_late", 0, bool(joined & 4), batch, LOSS),
        ("rewind", 0, 0.0),
        ("log", 0, 3, batch, LOSS, "all", False),
    ]
    for action in story:
        yard.do(action)
    tables = {run: PlainTable(plain.rows) for run, plain in yard.plain.items()}
    yard.read(lambda connection: check_runs(connection, tables, **QUESTION))
    yard.read(lambda connection: check_archives(connection, yard.plain))


@pytest.mark.parametrize(("batch", "joined"), list(product([1, 1000], [0, 1, 2, 3])))
def test_a_fork_has_rows_without_a_step_behind_each_other(
    client: Client, tracker: Tracker, batch: int, joined: int
) -> None:
    yard = Yard(client, tracker)
    story: list[Action] = [
        ("log", 0, 5, batch, LOSS, "all", bool(joined & 1)),
        ("log", 0, 12, batch, LOSS, "some", bool(joined & 2)),
        ("log", 0, 12, batch, LOSS, "odd", False),
        ("fork", 0, 0.1),
        ("log", 2, 3, batch, LOSS, "all", False),
    ]
    for action in story:
        yard.do(action)
    tables = {run: PlainTable(plain.rows) for run, plain in yard.plain.items()}
    assert len(tables) == 3
    yard.read(lambda connection: check_runs(connection, tables, **QUESTION))
