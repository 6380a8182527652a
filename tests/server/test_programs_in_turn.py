"""Which rows of a trial's first program come again is asked only where it was cut off."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from runyard.server.tracker import Tracker
from tests.server.asgi import Client
from tests.server.processes import Process
from tests.server.sweeping import Agent, create
from tests.server.test_going_back import ONE, T0, cut_off, epochs_of, go_back, send


def trained(epochs: range, since: float = T0) -> list[str]:
    return [
        json.dumps(
            {"_step": epoch, "_timestamp": since + at, "epoch": epoch, "loss": 1 / (epoch + 1)}
        )
        for at, epoch in enumerate(epochs)
    ]


def resume(client: Client, held: Mapping[str, Any]) -> int:
    """A program goes on with the run; how many rows its client is told of."""
    name = held["run"]["id"]
    answer = client.graphql(
        f'{{ model(name: "birds") {{ bucket(name: "{name}") {{ historyLineCount }} }} }}'
    )
    Process(client, name).start()
    count: int = answer["data"]["model"]["bucket"]["historyLineCount"]
    return count


def complete(client: Client, held: Mapping[str, Any], exit_code: int) -> None:
    run = held["run"]
    place = f"/files/{run['entity']}/{run['project']}/{run['id']}/file_stream"
    assert client.post(place, {"complete": True, "exitcode": exit_code}).status == 200


@pytest.mark.parametrize("keys", [["test_acc"], ["loss"]])
def test_a_second_program_of_an_uncut_trial_takes_no_rows_away(
    client: Client, tracker: Tracker, keys: list[str]
) -> None:
    """`python train.py && python test.py`: the latter names the epoch of the best model."""
    held = Agent(client, create(client, ONE)["key"]).claim()
    Process(client, held["run"]["id"]).start()
    send(client, held, 0, trained(range(10)))
    complete(client, held, 0)
    told = resume(client, held)
    row = {"_step": told, "_timestamp": T0 + 20, "epoch": 7, **dict.fromkeys(keys, 0.9)}
    send(client, held, told, [json.dumps(row)])
    assert epochs_of(tracker, held) == [*range(10), 7]


def test_an_evaluation_that_comes_first_after_a_cut_takes_no_row_away(
    client: Client, tracker: Tracker
) -> None:
    agent, held = cut_off(client, trained(range(8)))
    go_back(agent, held, saved_at=T0 + 100)
    told = resume(client, held)
    tested = {"_step": told, "_timestamp": T0 + 100, "epoch": 7, "val": 1}
    later = {"_step": told + 1, "_timestamp": T0 + 101, "epoch": 8, "loss": 1}
    send(client, held, told, [json.dumps(row) for row in (tested, later)])
    assert epochs_of(tracker, held) == [*range(8), 7, 8]


@pytest.mark.parametrize("exit_code", [None, 1])
def test_a_program_that_its_own_script_starts_again_logs_no_row_twice(
    client: Client, tracker: Tracker, exit_code: int | None
) -> None:
    """`until python train.py; do :; done`, all in one attempt."""
    held = Agent(client, create(client, ONE)["key"]).claim()
    Process(client, held["run"]["id"]).start()
    send(client, held, 0, trained(range(8)))
    if exit_code is not None:
        complete(client, held, exit_code)
    told = resume(client, held)
    send(client, held, told, trained(range(6, 10), T0 + 100))
    assert epochs_of(tracker, held) == list(range(10))
