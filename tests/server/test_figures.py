"""What kinds of experiments need, as the server keeps it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.server.asgi import Client
from tests.server.conftest import Upsert
from tests.server.sweeping import Agent, create

FIGURES = {"whole_seconds": 60.0, "memory_peak": 10**9}


def add(client: Client, kind: str, hardware: str = "", **figures: Any) -> None:
    told = {"project": "birds", "kind": kind, "hardware": hardware,
            "figures": {**FIGURES, **figures}}  # fmt: skip
    assert client.post("/api/figures", told).status == 200


def known(client: Client, **query: Any) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/api/figures", project="birds", **query).json()
    return found


def test_figures_are_kept_for_each_kind_and_hardware(client: Client) -> None:
    add(client, "ppo.py", "A100", memory_peak=1)
    add(client, "sac.py", "A100", memory_peak=2)
    add(client, "ppo.py", "H200", memory_peak=3)
    add(client, "ppo.py", "H200", memory_peak=4)
    peaks = [one["figures"]["memory_peak"] for one in known(client, kind="ppo.py")["figures"]]
    assert peaks == [4, 3, 1]
    assert {one["kind"] for one in known(client)["figures"]} == {"ppo.py", "sac.py"}
    assert known(client, kind="ppo.py")["figures"][0]["hardware"] == "H200"


def test_of_each_kind_the_newest_are_kept(client: Client) -> None:
    for number in range(23):
        add(client, "train.py", memory_peak=number)
    peaks = [one["figures"]["memory_peak"] for one in known(client)["figures"]]
    assert peaks == list(range(22, 2, -1))


def test_an_estimate_is_held_against_what_the_trials_took(client: Client) -> None:
    sweep = create(client)
    where = f"/api/sweeps/{sweep['key']}/estimate"
    assert client.get(where).status == 404
    client.post(where, {"kind": "train.py", "estimate": {"each": 60.0}})
    assert client.get(where).json() == {
        "kind": "train.py", "estimate": {"each": 60.0}, "truth": None,
    }  # fmt: skip
    agent = Agent(client, sweep["key"])
    agent.end(agent.claim())
    truth = client.get(where).json()["truth"]
    assert truth["trials"] == 1
    assert 0 <= truth["seconds"] < 60
    # The next estimate of the kind begins with it.
    [ran] = known(client, kind="train.py")["sweeps"]
    assert (ran["id"], ran["truth"]) == (sweep["id"], truth)
    assert known(client, kind="another.py")["sweeps"] == []


@pytest.mark.parametrize(
    "wrong", [{"kind": ""}, {"kind": "x" * 400}, {"figures": []}, {"project": "a/b"}]
)
def test_what_makes_no_sense_is_refused(client: Client, wrong: dict[str, Any]) -> None:
    told = {"project": "birds", "kind": "train.py", "figures": FIGURES, **wrong}
    assert client.post("/api/figures", told).status == 400


def test_others_neither_see_nor_write_it(client: Client) -> None:
    add(client, "train.py")
    bob = client.post("/api/users", {"name": "bob"}).json()["key"]
    seen = client.get("/api/figures", key=bob, project="birds", entity="ada").json()
    assert seen == {"figures": [], "sweeps": []}
    told = {"project": "birds", "kind": "t.py", "figures": FIGURES, "entity": "ada"}
    assert client.post("/api/figures", told, key=bob).status == 403


def test_a_trial_that_tells_how_far_it_is_has_a_time_left(client: Client, upsert: Upsert) -> None:
    sweep = create(client)
    held = Agent(client, sweep["key"]).claim()
    summary = '{"progress/step": 10, "progress/total": 100, "progress/seconds_left": 90}'
    upsert(name=held["run"]["id"], summaryMetrics=summary)
    [trial] = client.get(f"/api/sweeps/{sweep['key']}/trials").json()
    assert trial["seconds_left"] == pytest.approx(90, abs=5)
    # Six trials in all, one at a time, each about as long as this one says.
    whole = client.get(f"/api/sweeps/{sweep['key']}").json()
    assert whole["eta_seconds"] == pytest.approx(6 * 90, rel=0.1)
