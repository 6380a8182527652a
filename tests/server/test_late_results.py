"""What a trial logged counts, also where it comes after the trial's end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from runyard.server.sweeps.ledger import results
from runyard.server.tracker import Tracker
from tests.server.asgi import Client
from tests.server.processes import SYNC, Process
from tests.server.sweeping import Agent, create, log, show, trials

RANDOM: Mapping[str, Any] = {
    "method": "random",
    "metric": {"name": "loss", "goal": "minimize"},
    "parameters": {"x": {"min": 0.0, "max": 1.0}},
    "runyard": {"stop_after_failures": 0},
}
SUMMARY = """mutation($id: String!, $summary: JSONString) { upsertBucket(input: {
    id: $id, summaryMetrics: $summary }) { bucket { id } } }"""


def sync(client: Client, held: Mapping[str, Any], *values: float) -> None:
    """What a program recorded to disk comes after the trial's end."""
    synced = Process(client, held["run"]["id"], features=(SYNC,))
    synced.start()
    lines = [
        json.dumps({"_step": step, "_timestamp": synced.started_at + step, "loss": value})
        for step, value in enumerate(values)
    ]
    synced.post({"wandb-history.jsonl": (0, lines)})
    synced.finish()


def values_of(client: Client, sweep: Mapping[str, Any]) -> list[float | None]:
    return [trial["value"] for trial in trials(client, sweep)]


def view(tracker: Tracker, sweep: Mapping[str, Any], before: results.View) -> results.View:
    found = tracker._database.read(
        lambda db: results.view(db, sweep["key"], before.upto, ends=before.ends)
    ).result()
    assert found is not None
    return found


def test_a_trial_that_is_synced_after_its_end_can_be_the_best(
    client: Client, tracker: Tracker
) -> None:
    sweep = create(client, RANDOM)
    agent = Agent(client, sweep["key"])
    first, second = agent.claim(), agent.claim()
    log(client, first, 0.5)
    agent.end(first)
    agent.end(second)
    assert values_of(client, sweep) == [0.5, None]
    told = view(tracker, sweep, results.View())
    assert [result["values"] for result in told.results] == [[0.5], []]
    sync(client, second, 0.75, 0.25, 1.0)
    assert values_of(client, sweep) == [0.5, 0.25]
    best = show(client, sweep)["best"]
    assert (best["number"], best["value"]) == (2, 0.25)
    # What the search was told of this trial does not hold any more.
    anew = view(tracker, sweep, told)
    assert anew.is_anew
    assert [result["values"] for result in anew.results] == [[0.5], [0.25]]
    assert view(tracker, sweep, anew).results == []


def test_a_late_row_can_be_the_best(client: Client, tracker: Tracker) -> None:
    sweep = create(client, RANDOM)
    agent = Agent(client, sweep["key"])
    held = agent.claim()
    log(client, held, 1.0)
    agent.end(held)
    told = view(tracker, sweep, results.View())
    log(client, held, 2.0, start=1)
    assert view(tracker, sweep, told).results == [], "it is as good as before"
    log(client, held, 0.25, start=2)
    assert show(client, sweep)["best"]["value"] == 0.25
    (result,) = view(tracker, sweep, told).results
    assert result["values"] == [0.25]


def test_a_summary_that_is_set_later_counts(client: Client) -> None:
    sweep = create(client, RANDOM)
    agent = Agent(client, sweep["key"])
    held = agent.claim()
    log(client, held, 1.0)
    agent.end(held)
    bucket = f'{{ model(name: "birds") {{ bucket(name: "{held["run"]["id"]}") {{ id }} }} }}'
    found = client.graphql(bucket)["data"]["model"]["bucket"]["id"]
    client.graphql(SUMMARY, {"id": found, "summary": json.dumps({"loss": 0.5})})
    assert show(client, sweep)["best"]["value"] == 0.5


@pytest.mark.parametrize(("exit_code", "score"), [(0, 0.5), (1, None)])
def test_what_a_failed_program_logged_is_no_result_later_either(
    client: Client, exit_code: int, score: float | None
) -> None:
    sweep = create(client, RANDOM)
    agent = Agent(client, sweep["key"])
    held = agent.claim()
    agent.end(held, exit_code)
    sync(client, held, 0.5)
    best = show(client, sweep)["best"]
    assert (best and best["value"]) == score


def test_a_target_that_is_reached_in_late_rows_ends_the_sweep(client: Client) -> None:
    metric = {"name": "loss", "goal": "minimize", "target": 0.1}
    sweep = create(client, {**RANDOM, "metric": metric})
    agent = Agent(client, sweep["key"])
    held = agent.claim()
    agent.end(held)
    sync(client, held, 0.5)
    assert show(client, sweep)["state"] == "running"
    sync(client, held, 0.05)
    assert show(client, sweep)["state"] == "finished"


def test_rows_of_a_trial_at_work_are_measured_at_its_end_alone(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[int] = []
    monkeypatch.setattr(
        "runyard.server.tracking.appending.late_results.measure_again",
        lambda _db, run, _now: measured.append(run),
    )
    agent = Agent(client, create(client, RANDOM)["key"])
    held = agent.claim()
    log(client, held, 1.0)
    log(client, held, 2.0, start=1)
    assert measured == []
