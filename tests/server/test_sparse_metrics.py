"""Metrics that are logged rarely, and names that two users nest differently: read as rows say."""

from __future__ import annotations

import json
import sqlite3
import time
from typing import Any

import pytest

from runyard.server.api.charts import unpack
from runyard.server.history.history import HISTORY
from runyard.server.history.joining import join_batches
from runyard.server.sweeps.ledger import leases
from runyard.server.tracker import Tracker
from tests.server.asgi import Client
from tests.server.conftest import Upsert
from tests.server.sweeping import GRID, Agent, create, trials

EVERY = 20
BEST = 0.1


def rows_with_rare_values(count: int, best_at: int = 119) -> list[dict[str, Any]]:
    """`val` is in every 20th row and falls slowly, but for one value."""
    return [
        {"_step": row, "loss": float(row)}
        | ({"val": BEST if row == best_at else 2 - row / 1000} if row % EVERY == 19 else {})
        for row in range(count)
    ]


class History:
    """Rows of one run, sent in batches; joined when the test says so."""

    def __init__(self, client: Client, tracker: Tracker, path: str, key: int = 1) -> None:
        self._client, self._tracker, self._path, self._key = client, tracker, path, key
        self._count = 0

    def send(self, rows: list[dict[str, Any]], batch: int = 1) -> None:
        for start in range(0, len(rows), batch):
            lines = [json.dumps(row) for row in rows[start : start + batch]]
            files = {"wandb-history.jsonl": {"offset": self._count, "content": lines}}
            answer = self._client.post(f"/files/{self._path}/file_stream", {"files": files})
            assert answer.status == 200, answer.text
            self._count += len(lines)

    def join(self) -> None:
        self._tracker._database.write(
            lambda connection: join_batches(connection, self._key, HISTORY)
        ).result()

    def send_and_join(self, rows: list[dict[str, Any]], every: int, batch: int = 1) -> None:
        """With the joiner's work after every so many rows; what is left stays unjoined."""
        for start in range(0, len(rows), every):
            self.send(rows[start : start + every], batch)
            if start + every <= len(rows):
                self.join()


@pytest.fixture
def history(client: Client, tracker: Tracker, upsert: Upsert) -> History:
    upsert(name="run1")
    return History(client, tracker, "ada/birds/run1")


def metric_of(client: Client, name: str, points: int) -> Any:
    metrics = client.get("/api/runs/1/metrics", points=points).json()
    return next(metric for metric in metrics if metric["key"] == name)


def test_the_extremes_of_a_rare_metric_while_a_part_is_joined(
    client: Client, history: History
) -> None:
    history.send_and_join(rows_with_rare_values(560), every=105)
    for points in (1, 2, 5, 28, 1000):
        found = metric_of(client, "val", points)
        assert (found["minimum"], found["count"]) == (BEST, 28)
        assert found["maximum"] == 2 - 19 / 1000
        assert found["last"] == found["values"][-1] == 2 - 559 / 1000
        assert len(found["values"]) == min(points, 28)


def test_a_long_curve_keeps_the_last_rows(client: Client, history: History) -> None:
    count = 20_050
    rows = [{"_step": row, "loss": row} for row in range(count)]
    history.send_and_join(rows[:20_000], every=10_000, batch=5_000)
    history.send(rows[20_000:])
    history.join()
    history.send([{"_step": count, "other": 1}])
    found = metric_of(client, "loss", 100)
    assert (found["count"], found["steps"][-1], found["last"]) == (count, count - 1, count - 1)
    answer = client.post(
        "/api/curves", {"project": "ada/birds", "metrics": ["loss"], "points": 100}
    )
    (curve,) = unpack(answer.body)
    assert (curve.columns["x"][-1], curve.columns["high"].max()) == (count - 1, count - 1)


def test_rows_that_fill_a_gap_late_are_drawn_where_they_belong(
    client: Client, tracker: Tracker, history: History
) -> None:
    history._count = 40
    history.send([{"_step": row, "loss": row} for row in range(40, 2_000)], batch=500)
    history.join()
    history._count = 0
    history.send([{"_step": row, "loss": row} for row in range(40)], batch=40)
    history._count = 2_000
    history.send([{"_step": row, "loss": row} for row in range(2_000, 2_010)], batch=10)
    for points in (7, 20, 100, 5_000):
        found = metric_of(client, "loss", points)
        assert found["steps"] == sorted(found["steps"])
        assert (found["steps"][-1], found["last"]) == (2_009, 2_009)


def _drop_levels(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM series WHERE level > 0 AND start % 200 = 0")


def test_levels_that_a_segment_lacks_are_made_up_for(
    client: Client, tracker: Tracker, history: History
) -> None:
    rows = [{"_step": row, "loss": (row * 37) % 1001} for row in range(1_000)]
    history.send_and_join(rows, every=100, batch=50)
    before = metric_of(client, "loss", 10)
    tracker._database.write(_drop_levels).result()
    after = metric_of(client, "loss", 10)
    for name in ("count", "minimum", "maximum", "last"):
        assert after[name] == before[name]
    assert after["steps"][-1] == 999


SWEEP = {**GRID, "metric": {"name": "val", "goal": "minimize"}}


def history_of(client: Client, tracker: Tracker, held: dict[str, Any]) -> History:
    run = held["run"]
    path = f"{run['entity']}/{run['project']}/{run['id']}"
    return History(client, tracker, path, run["key"])


def test_a_trial_is_scored_by_its_best_value_wherever_it_is_stored(
    client: Client, tracker: Tracker
) -> None:
    sweep = create(client, SWEEP)
    agent = Agent(client, sweep["key"])
    held = agent.claim()
    history_of(client, tracker, held).send_and_join(rows_with_rare_values(560), every=105)
    assert agent.end(held)["metrics"] == {"val": BEST}


def test_a_trial_ends_where_the_last_rows_lack_its_metric(client: Client, tracker: Tracker) -> None:
    sweep = create(client, SWEEP)
    agent = Agent(client, sweep["key"])
    held = agent.claim()
    history = history_of(client, tracker, held)
    history.send_and_join(rows_with_rare_values(1_050), every=105, batch=35)
    history.send([{"_step": 1_050, "loss": 1.0}])
    assert agent.end(held)["metrics"] == {"val": BEST}


def _break_metric(connection: sqlite3.Connection, run: int) -> None:
    connection.execute("UPDATE batches SET data = x'00' WHERE run = ?", (run,))


def test_a_trial_that_cannot_be_measured_keeps_no_other_from_being_settled(
    client: Client, tracker: Tracker
) -> None:
    sweep = create(client, SWEEP)
    agent = Agent(client, sweep["key"])
    broken, other = agent.claim(), agent.claim()
    for held in (broken, other):
        history_of(client, tracker, held).send([{"_step": 0, "val": 1.0}])
        stopped = client.post(f"/api/runs/{held['run']['key']}/stop", {})
        assert stopped.status == 200, stopped.text
    tracker._database.write(
        lambda connection: _break_metric(connection, broken["run"]["key"])
    ).result()
    tracker._database.write(
        lambda connection: leases.lose_silent(connection, time.time() + 1000)
    ).result()
    states = {trial["number"]: trial["state"] for trial in trials(client, sweep)}
    assert states[other["trial"]["number"]] == "stopped"
    assert states[broken["trial"]["number"]] == "running"


@pytest.mark.parametrize("joined", [False, True])
def test_a_name_means_what_its_own_run_logged_under_it(
    client: Client, tracker: Tracker, upsert: Upsert, joined: bool
) -> None:
    rows: dict[str, dict[str, Any]] = {
        "nested": {"val": {"loss": 1.0}, "epoch": {"at": 5}},
        "literal": {"val.loss": 2.0, "epoch.at": 6},
        "both": {"val.loss": 3.0, "val": {"loss": 4.0}, "epoch": {"at": 7}},
        "partly": {"a.val": {"loss": 9.0}, "val": {"loss": 5.0}, "epoch": {"at": 8}},
    }
    for key, (run, row) in enumerate(rows.items(), 1):
        upsert(name=run)
        history = History(client, tracker, f"ada/birds/{run}", key)
        history.send([{"_step": 0, **row}])
        if joined:
            history.join()
    asked = {"project": "ada/birds", "metrics": ["val.loss", "a.val.loss"], "x": "epoch.at"}
    found = unpack(client.post("/api/curves", asked).body)
    points = {
        (curve.about["metric"], curve.about["run"]): (*curve.columns["x"], *curve.columns["last"])
        for curve in found
    }
    assert points == {
        ("val.loss", 1): (5, 1),
        ("val.loss", 2): (6, 2),
        ("val.loss", 3): (7, 3),
        ("val.loss", 4): (8, 5),
        ("a.val.loss", 4): (8, 9),
    }
    for key, value in enumerate((1.0, 2.0, 3.0, 5.0), 1):
        metrics = {
            metric["key"]: metric["last"]
            for metric in client.get(f"/api/runs/{key}/metrics", points=5).json()
        }
        assert metrics["val.loss"] == value
        page = client.get(f"/api/runs/{key}/rows", metric="val.loss").text
        row = json.loads(page)
        assert row.get("val.loss", row.get("val", {}).get("loss")) == value
        assert len(row) == 2


def test_another_users_key_hides_no_metric_from_a_measure(client: Client, tracker: Tracker) -> None:
    sweep = create(client, {**GRID, "metric": {"name": "val.loss", "goal": "minimize"}})
    agent = Agent(client, sweep["key"])
    literal, nested = agent.claim(), agent.claim()
    history_of(client, tracker, literal).send([{"_step": 0, "val.loss": 7.0}])
    history_of(client, tracker, nested).send([{"_step": 0, "val": {"loss": 3.0}}])
    assert agent.end(nested)["metrics"] == {"val.loss": 3.0}
    assert agent.end(literal)["metrics"] == {"val.loss": 7.0}


def test_filters_and_measures_agree_on_a_dotted_name(client: Client, upsert: Upsert) -> None:
    upsert(name="run1", summaryMetrics=json.dumps({"val": {"loss": 1}, "val.loss": 2}))
    query = """query Runs($filters: JSONString) { project(name: "birds") {
        runs(filters: $filters) { edges { node { name } } } } }"""
    for value, count in ((2, 1), (1, 0)):
        filters = json.dumps({"summary_metrics.val.loss": value})
        answer = client.graphql(query, {"filters": filters})
        assert len(answer["data"]["project"]["runs"]["edges"]) == count


@pytest.mark.parametrize(
    ("values", "best"),
    [
        (["NaN"], None),
        (["-Infinity", "NaN", "4"], 4.0),
        (["true", "false", "4"], 4.0),
        (["9" * 400, '"text"'], None),
    ],
)
def test_a_measure_is_the_best_finite_number(
    client: Client, tracker: Tracker, values: list[str], best: float | None
) -> None:
    sweep = create(client, SWEEP)
    agent = Agent(client, sweep["key"])
    held = agent.claim()
    lines = [f'{{"_step": {step}, "val": {value}}}' for step, value in enumerate(values)]
    run = held["run"]
    summary = f'{{"val": {values[0]}}}'
    files = {
        "wandb-history.jsonl": {"offset": 0, "content": lines},
        "wandb-summary.json": {"offset": 0, "content": [summary]},
    }
    path = f"/files/{run['entity']}/{run['project']}/{run['id']}/file_stream"
    assert client.post(path, {"files": files}).status == 200
    assert agent.end(held)["metrics"] == ({} if best is None else {"val": best})
