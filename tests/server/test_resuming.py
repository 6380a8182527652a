"""A run that goes on: resumed, begun anew under its id, rewound, forked."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

import pytest

from runyard.server.history.joining import Join
from runyard.server.runs import runs
from runyard.server.store.store import carry_out
from runyard.server.tracker import Tracker
from runyard.server.wandb_api.fields.run_fields import resume_fields
from runyard.server.wandb_api.graphql.inputs import Arguments
from runyard.server.wandb_api.graphql.request import Source
from tests.server.asgi import Client
from tests.server.processes import REWIND, Process, history_of, run_of, steps_of
from tests.server.sweeping import GRID, create


def _rewind(client: Client, step: object, run: str = "run1", metric: str = "_step") -> object:
    return client.graphql(
        REWIND, {"runName": run, "project": "birds", "metricName": metric, "metricValue": step}
    )


def _finished(client: Client, steps: int = 10, run: str = "run1") -> tuple[Process, str]:
    process = Process(client, run)
    opaque: str = process.start()["id"]
    process.log(0, range(steps))
    process.finish()
    return process, opaque


def test_who_resumes_goes_on_where_the_other_stopped(client: Client, tracker: Tracker) -> None:
    first, opaque = _finished(client)
    second = Process(client)
    assert second.start(id=opaque)["historyLineCount"] == 10
    assert run_of(client)["state"] == "running"
    second.log(10, range(10, 15))
    second.log(12, range(12, 15))
    assert history_of(tracker) == [
        *((step, first.started_at) for step in range(10)),
        *((step, second.started_at) for step in range(10, 15)),
    ]
    assert run_of(client)["archives"] == []


def test_a_rewound_run_that_a_sweep_was_told_of_stays_rewound(
    client: Client, tracker: Tracker
) -> None:
    """It is no trial of the sweep: what was cut off by hand does not come back."""
    _, opaque = _finished(client)
    create(client, {**GRID, "parameters": {"lr": {"value": 0.1}}}, prior_runs=["run1"])
    _rewind(client, 4)
    second = Process(client)
    second.start(id=opaque)
    second.log(5, [20])
    assert steps_of(tracker) == [0, 1, 2, 3, 4, 20]
    change = 'mutation($id: ID!) { updateRunState(input: {id: $id, state: "failed"}) { success } }'
    assert "errors" not in client.graphql(change, {"id": opaque})


def test_an_answer_needs_the_database_no_more(client: Client, tracker: Tracker) -> None:
    """GraphQL fields are worked out in the event loop, where no connection may be used."""
    _finished(client)

    def ask(connection: sqlite3.Connection) -> Source:
        row = runs.by_key(connection, 1)
        assert row is not None
        return resume_fields(connection, row)

    fields = tracker._database.read(ask).result()
    assert "t" in json.loads(fields["wandbConfig"](Arguments(keys=["t"])))


def test_who_resumes_and_counts_from_zero_overwrites_nothing(
    client: Client, tracker: Tracker
) -> None:
    _, opaque = _finished(client)
    second = Process(client)
    second.start(id=opaque)
    second.log(0, [10, 11])
    second.log(2, [12])
    second.log(2, [12])
    assert steps_of(tracker) == list(range(13))


def test_older_clients_ask_and_then_do_not_name_the_key(client: Client, tracker: Tracker) -> None:
    _finished(client)
    asked = client.graphql('{ model(name: "birds") { bucket(name: "run1") { historyLineCount } } }')
    assert asked["data"]["model"]["bucket"]["historyLineCount"] == 10
    second = Process(client)
    assert second.start()["historyLineCount"] == 10
    second.log(10, [10])
    second.finish()
    assert steps_of(tracker) == list(range(11))
    # Who comes next has not asked.
    assert Process(client).start()["historyLineCount"] == 0


def test_the_same_id_without_resuming_begins_anew_and_keeps_the_old_rows(
    client: Client, tracker: Tracker
) -> None:
    first, _ = _finished(client)
    tracker._database.write(lambda connection: carry_out(connection, Join(1))).result()
    first.post({"wandb-summary.json": (0, ['{"best": 1}'])})
    second = Process(client)
    assert second.start({"lr": 2})["historyLineCount"] == 0
    assert second.start({"lr": 2})["historyLineCount"] == 0  # Its answer was lost: asked again.
    second.log(0, range(3))
    assert history_of(tracker) == [(step, second.started_at) for step in range(3)]
    run = run_of(client)
    assert (run["state"], run["steps"], run["config"]) == ("running", 3, {"lr": 2})
    assert run["summary"] == {}
    (archive,) = run["archives"]
    assert (archive["reason"], archive["steps"]) == ("restarted", 10)
    assert client.get("/api/runs/1/metrics").json()[0]["count"] == 3


def test_what_was_put_aside_can_be_read(client: Client, tracker: Tracker) -> None:
    first, _ = _finished(client)
    first.post({"wandb-summary.json": (0, ['{"best": 1}'])})
    second = Process(client)
    second.start({"lr": 2})
    second.log(0, range(3))
    second.finish()
    _rewind(client, 1)
    restarted, rewound = client.get("/api/runs/1/archives").json()
    assert (restarted["number"], restarted["reason"]) == (1, "restarted")
    assert (restarted["config"], restarted["summary"]) == ({}, {"best": 1})
    assert (rewound["reason"], rewound["config"]) == ("rewound", {"lr": 2})

    def steps(**query: Any) -> list[int]:
        page = client.get("/api/runs/1/rows", **query).text
        return [json.loads(line)["_step"] for line in page.splitlines()]

    assert steps(archive=1) == list(range(10))
    assert steps(archive=1, start=7) == [7, 8, 9]
    assert steps(archive=2) == [2]
    assert steps() == steps(archive=0) == [0, 1]
    assert steps(archive=3) == []
    assert client.get("/api/runs/1/rows", archive="x").status == 400
    assert client.get("/api/runs/2/archives").status == 404


def test_a_second_process_beside_a_living_one_puts_nothing_aside(
    client: Client, tracker: Tracker
) -> None:
    first, second = Process(client), Process(client)
    first.start()
    first.log(0, range(5))
    assert second.start()["historyLineCount"] == 5
    second.log(0, range(3))  # Up to 0.17 they begin at zero all the same.
    assert len(history_of(tracker)) == 8
    assert run_of(client)["archives"] == []


def test_a_rewind_takes_the_later_rows_out(client: Client, tracker: Tracker) -> None:
    process, opaque = _finished(client)
    process.post({"wandb-summary.json": (0, ['{"v": {"max": 99}, "typed": 1}'])})
    events = [json.dumps({"_timestamp": process.started_at + n, "cpu": n}) for n in range(3)]
    process.post({"wandb-events.jsonl": (0, events)})
    rewound = _rewind(client, 3)
    assert isinstance(rewound, dict)
    answer = rewound["data"]["rewindRun"]["rewoundRun"]
    assert answer["historyLineCount"] == 4
    assert answer["id"] == opaque
    assert answer["project"] == {"name": "birds", "entity": {"name": "ada"}}
    assert steps_of(tracker) == [0, 1, 2, 3]
    run = run_of(client)
    assert run["state"] == "running"
    assert run["summary"]["_step"] == 3
    assert run["summary"]["v"] == {"max": process.started_at}
    assert "typed" not in run["summary"]
    assert [(one["reason"], one["steps"]) for one in run["archives"]] == [("rewound", 6)]

    again = Process(client)
    assert again.start(id=opaque)["historyLineCount"] == 4
    again.log(4, [4, 5])
    # It counts its system metrics from zero; those from before the step stay.
    again.post({"wandb-events.jsonl": (0, [json.dumps({"_timestamp": again.started_at})])})
    assert history_of(tracker)[3:] == [
        (3, process.started_at),
        (4, again.started_at),
        (5, again.started_at),
    ]


def test_who_rewinds_may_say_nothing_more_before_its_rows(client: Client, tracker: Tracker) -> None:
    process, _ = _finished(client)
    process.post({"output.log": (0, ["one", "two"])})
    _rewind(client, 3)
    again = Process(client)
    again.post({"output.log": (0, ["three"])})
    again.log(4, [4])
    again.finish()
    assert steps_of(tracker) == [0, 1, 2, 3, 4]
    assert client.get("/api/runs/1/console").json()["text"] == "one\ntwo\nthree\n"
    assert run_of(client)["state"] == "finished"


def test_a_rewind_behind_the_end_changes_no_row(client: Client, tracker: Tracker) -> None:
    _finished(client)
    _rewind(client, 50)
    assert steps_of(tracker) == list(range(10))
    assert run_of(client)["archives"] == []


@pytest.mark.parametrize(
    ("step", "run", "metric"),
    [(1, "gone", "_step"), ("x", "run1", "_step"), (None, "run1", "_step"), (1, "run1", "loss")],
)
def test_a_rewind_that_cannot_be(client: Client, step: object, run: str, metric: str) -> None:
    _finished(client)
    refused = _rewind(client, step, run, metric)
    assert isinstance(refused, dict)
    assert refused["errors"][0]["message"]
    assert run_of(client)["steps"] == 10


def test_a_fork_begins_with_its_parents_rows(client: Client, tracker: Tracker) -> None:
    parent, _ = _finished(client)
    tracker._database.write(lambda connection: carry_out(connection, Join(1))).result()
    child = Process(client, "child")
    branch = {"branch_point": {"run_id": "run1", "step": 4}}
    assert child.start(internals=branch)["historyLineCount"] == 5
    assert child.start(internals=branch)["historyLineCount"] == 5
    child.log(5, [5, 6])
    assert history_of(tracker, 2) == [
        *((step, parent.started_at) for step in range(5)),
        (5, child.started_at),
        (6, child.started_at),
    ]
    assert steps_of(tracker) == list(range(10))
    orphan = Process(client, "orphan")
    assert orphan.start(internals={"branch_point": {"run_id": "gone", "step": 4}})["state"]


def test_the_console_of_each_client_is_kept(client: Client) -> None:
    first = Process(client)
    opaque = first.start()["id"]
    first.post({"output.log": (0, ["one", "two"])})
    first.finish()
    for offset in (0, 4):  # Some begin at zero, some where they were told that the run ends.
        process = Process(client)
        process.start(id=opaque)
        process.post({"output.log": (offset, ["three", "4%"])})
        process.post({"output.log": (offset + 1, ["\r5%\r100%"])})
    text = "one\ntwo\nthree\n100%\nthree\n100%\n"
    page = client.get("/api/runs/1/console").json()
    assert page["text"] == text
    assert client.get("/api/runs/1/console", after=page["next"]).json()["text"] == ""


def test_a_change_of_the_name_is_no_new_start(client: Client) -> None:
    """Newer clients name their host again, and their start only from the second time on."""
    process = Process(client)
    process.start(internals={"start_time": None})
    process.post({"output.log": (0, ["one", "4%"])})
    process.start({"lr": 1}, tags=["late"])
    process.post({"output.log": (1, ["100%"])})
    process.start({"lr": 1})
    process.log(0, range(3))
    assert client.get("/api/runs/1/console").json()["text"] == "one\n100%\n"
    assert (run_of(client)["archives"], run_of(client)["tags"]) == ([], ["late"])


def test_a_fork_keeps_rows_whose_step_is_no_number(client: Client, tracker: Tracker) -> None:
    parent = Process(client)
    parent.start()
    lines = [f'{{"_step": {step}, "_timestamp": 5}}' for step in ("0", "Infinity", "NaN", "9")]
    parent.post({"wandb-history.jsonl": (0, lines)})
    child = Process(client, "child")
    child.start(internals={"branch_point": {"run_id": "run1", "step": 4}})
    rows = client.get("/api/runs/2/rows").text.splitlines()
    assert [str(json.loads(row)["_step"]) for row in rows] == ["0", "inf", "nan"]
