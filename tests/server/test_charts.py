"""Curves over the wire: packed numbers, as many points as were asked for."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from runyard.server.api.charts import Packing, Unpacked, unpack
from runyard.server.history.reading.curves import Curve, combine
from tests.server.asgi import Client
from tests.server.conftest import Upsert
from tests.server.persons import Person


def log(
    client: Client, run: str, rows: list[dict[str, Any]], file: str = "wandb-history.jsonl"
) -> None:
    content = [json.dumps(row) for row in rows]
    answer = client.post(
        f"/files/ada/birds/{run}/file_stream", {"files": {file: {"offset": 0, "content": content}}}
    )
    assert answer.status == 200


def keys_of(client: Client) -> dict[str, int]:
    columns = client.get("/api/projects/ada/birds/runs").json()["columns"]
    return dict(zip(columns["id"], columns["key"], strict=True))


def ask(client: Client, **asked: Any) -> list[Unpacked]:
    answer = client.post("/api/curves", {"project": "ada/birds", **asked})
    assert answer.status == 200, answer.text
    return unpack(answer.body)


def test_metrics_of_a_projects_runs(client: Client, upsert: Upsert) -> None:
    for number in range(3):
        upsert(name=f"run{number}")
        rows = [{"_step": row, "loss": row * number, "acc": row / 300} for row in range(300)]
        log(client, f"run{number}", rows)
    upsert(name="other", project="fish")
    found = ask(client, metrics=["loss", "acc"], points=100)
    keys = keys_of(client)
    assert {(one.about["metric"], one.about["run"]) for one in found} == {
        (metric, key) for metric in ("loss", "acc") for key in keys.values()
    }
    for one in found:
        assert (one.about["count"], one.about["points"]) == (300, 100)
        assert one.columns["x"][-1] == 299
    slopes = {one.about["run"]: one.columns["high"][-1] for one in found[:3]}
    assert slopes == {keys[f"run{number}"]: 299 * number for number in range(3)}


def test_only_the_runs_that_are_named(client: Client, upsert: Upsert, bob: Person) -> None:
    for run in ("run1", "run2"):
        upsert(name=run)
        log(client, run, [{"_step": 0, "loss": 1.0}])
    keys = keys_of(client)
    (found,) = ask(client, metrics=["loss"], runs=[keys["run2"], 99_999])
    assert found.about["run"] == keys["run2"]
    refused = client.post("/api/curves", {"project": "ada/birds", "metrics": ["loss"]}, key=bob.key)
    assert refused.status == 404


def test_a_curve_that_shows_everything_has_no_band_and_steps_are_sent_once(
    client: Client, upsert: Upsert
) -> None:
    upsert(name="run1")
    log(client, "run1", [{"_step": row, "a": row, "b": -row} for row in range(50)])
    first, second = ask(client, metrics=["a", "b"], points=100)
    assert first.about["low"] is None
    assert first.about["x"] == second.about["x"]
    assert second.columns["last"].tolist() == [-float(row) for row in range(50)]


def test_a_metric_that_nobody_logged(client: Client, upsert: Upsert) -> None:
    upsert(name="run1")
    assert ask(client, metrics=["nothing"]) == []
    assert client.post("/api/curves", {"project": "ada/birds"}).status == 400
    assert client.post("/api/curves", {"project": "ada/none", "metrics": ["a"]}).status == 404


def test_another_metric_below(client: Client, upsert: Upsert) -> None:
    upsert(name="run1")
    log(client, "run1", [{"_step": row, "loss": -row, "epoch": row / 4} for row in range(8)])
    (curve,) = ask(client, metrics=["loss"], x="epoch")
    assert curve.columns["x"].tolist() == [row / 4 for row in range(8)]


def test_a_part_is_shown_in_detail_and_reaches_its_edges(client: Client, upsert: Upsert) -> None:
    upsert(name="run1")
    log(client, "run1", [{"_step": row, "loss": row} for row in range(1000)])
    (curve,) = ask(client, metrics=["loss"], points=100, range=[500, 520])
    assert curve.columns["x"].tolist() == list(range(499, 522))


def test_what_the_machine_did_is_a_stream_of_its_own(client: Client, upsert: Upsert) -> None:
    upsert(name="run1")
    log(client, "run1", [{"_timestamp": 5, "system.gpu.0.gpu": 70}], file="wandb-events.jsonl")
    (curve,) = ask(client, metrics=["system.gpu.0.gpu"], stream="events", x="_timestamp")
    assert (curve.columns["x"].tolist(), curve.columns["last"].tolist()) == ([5], [70])
    assert ask(client, metrics=["system.gpu.0.gpu"]) == []


def test_a_group_is_the_mean_of_all_its_runs(client: Client, upsert: Upsert) -> None:
    for number, height in enumerate((1.0, 3.0, 8.0)):
        upsert(name=f"run{number}")
        log(client, f"run{number}", [{"_step": row, "loss": height} for row in range(20)])
    keys = keys_of(client)
    both = [keys["run0"], keys["run1"]]
    first, second = ask(client, metrics=["loss"], groups=[both, [keys["run2"]]])
    assert (first.about["group"], first.about["count"]) == (0, 2)
    assert set(first.columns["last"].tolist()) == {2.0}
    assert set(first.columns["low"].tolist()) == {1.0}
    assert set(first.columns["high"].tolist()) == {3.0}
    assert np.allclose(first.columns["deviation"], np.sqrt(2))
    assert set(first.columns["runs"].tolist()) == {2.0}
    assert set(second.columns["deviation"].tolist()) == {0.0}


def curve(x: list[float], values: list[float]) -> Curve:
    return Curve(len(x), np.array(x), *[np.array(values)] * 3)


def test_runs_of_different_lengths_count_where_they_are() -> None:
    found = combine([curve([0, 2, 4], [0, 2, 4]), curve([0, 1], [10, 10])], 100)
    assert found is not None
    assert found.x.tolist() == [0, 1, 2, 4]
    assert found.mean.tolist() == [5, 5.5, 2, 4]
    assert found.runs.tolist() == [2, 2, 1, 1]


def test_no_spike_of_a_group_is_lost_between_two_places() -> None:
    values = np.zeros(1000)
    values[501] = 99.0
    values[77] = -5.0
    found = combine([curve(list(range(1000)), values.tolist())], 10)
    assert found is not None
    assert len(found.x) == 10
    assert (found.high.max(), found.low.min()) == (99, -5)


def test_what_is_no_number_is_passed_over() -> None:
    found = combine([curve([0, 1, 2], [1, float("nan"), 3]), curve([], [])], 10)
    assert found is not None
    assert (found.count, found.x.tolist(), found.mean.tolist()) == (1, [0, 2], [1, 3])
    assert combine([curve([0], [float("nan")])], 10) is None


@given(st.lists(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), min_size=1, max_size=5))
def test_a_groups_mean_is_numpys(heights: list[list[float]]) -> None:
    """Where all runs have the same steps."""
    length = min(map(len, heights))
    runs = [curve(list(range(length)), one[:length]) for one in heights]
    found = combine(runs, 1000)
    assert found is not None
    table = np.array([one[:length] for one in heights])
    assert np.allclose(found.mean, table.mean(axis=0))
    assert np.allclose(found.low, table.min(axis=0))
    assert np.allclose(found.high, table.max(axis=0))
    if len(heights) > 1:
        assert np.allclose(found.deviation, table.std(axis=0, ddof=1), atol=1e-4)


@given(st.lists(st.lists(st.floats(width=32), min_size=1), max_size=4))
def test_packed_is_unpacked(values: list[list[float]]) -> None:
    packing = Packing()
    for number, one in enumerate(values):
        packing.add_run(
            "loss", number, Curve(len(one) + 1, np.arange(float(len(one))), *[np.array(one)] * 3)
        )
    found = unpack(packing.packed(7))
    assert len(found) == len(values)
    for unpacked, told in zip(found, values, strict=True):
        for name in ("last", "low", "high"):
            assert np.array_equal(
                unpacked.columns[name], np.array(told, dtype=np.float32), equal_nan=True
            )
