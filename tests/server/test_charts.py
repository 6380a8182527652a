"""Curves over the wire: packed numbers, as many points as were asked for."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from runyard.server.charts import pack, unpack
from runyard.server.store.curves import Curve
from tests.server.asgi import Client
from tests.server.conftest import Upsert


def log(client: Client, run: str, rows: list[dict[str, float]]) -> None:
    answer = client.post(
        f"/files/ada/birds/{run}/file_stream",
        {
            "files": {
                "wandb-history.jsonl": {"offset": 0, "content": [json.dumps(row) for row in rows]}
            }
        },
    )
    assert answer.status == 200


def test_one_metric_of_a_projects_runs(client: Client, upsert: Upsert) -> None:
    for number in range(3):
        upsert(name=f"run{number}")
        log(client, f"run{number}", [{"_step": row, "loss": row * number} for row in range(300)])
    upsert(name="other", project="fish")
    found = unpack(client.get("/api/curves", project="birds", metric="loss", points="100").body)
    assert {about["id"] for about, _ in found} == {"run0", "run1", "run2"}
    for about, curve in found:
        assert (about["count"], about["points"]) == (300, 100)
        assert curve.x[-1] == 299
        assert curve.high[-1] == 299 * int(about["id"][-1])
    named = unpack(client.get("/api/curves", metric="loss", run="run1").body)
    assert [about["id"] for about, _ in named] == ["run1"]


def test_a_metric_that_nobody_logged(client: Client, upsert: Upsert) -> None:
    upsert(name="run1")
    assert unpack(client.get("/api/curves", metric="nothing").body) == []
    assert client.get("/api/curves").status == 400


def test_another_metric_below(client: Client, upsert: Upsert) -> None:
    upsert(name="run1")
    log(client, "run1", [{"_step": row, "loss": -row, "epoch": row / 4} for row in range(8)])
    ((_, curve),) = unpack(client.get("/api/curves", metric="loss", x="epoch").body)
    assert curve.x.tolist() == [row / 4 for row in range(8)]


@given(st.lists(st.lists(st.floats(width=32), min_size=1), max_size=4))
def test_packed_is_unpacked(values: list[list[float]]) -> None:
    curves = [
        ({"id": str(place)}, Curve(len(one), np.arange(float(len(one))), *[np.array(one)] * 3))
        for place, one in enumerate(values)
    ]
    back = unpack(pack(curves))
    assert [about["count"] for about, _ in back] == [len(one) for one in values]
    for (_, curve), one in zip(back, values, strict=True):
        assert np.array_equal(curve.last, np.array(one, np.float32), equal_nan=True)
