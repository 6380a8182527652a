"""A trial goes on from a checkpoint: its history ends there first, and goes on from there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from runyard.server.history.history import EVENTS, HISTORY, read_objects
from runyard.server.tracker import Tracker
from tests.server.asgi import Client
from tests.server.processes import SYNC, Process
from tests.server.processes import steps_of as steps_of_run
from tests.server.sweeping import GRID, Agent, create

ONE: Mapping[str, Any] = {**GRID, "parameters": {"lr": {"value": 0.1}}}
T0 = 1_700_000_000.0


def rows(steps: range, since: float = T0) -> list[str]:
    """Logged one a second from `since` on."""
    return [
        json.dumps({"_step": step, "_timestamp": since + number, "loss": step / 2, "v": 0})
        for number, step in enumerate(steps)
    ]


def send(
    client: Client,
    held: Mapping[str, Any],
    start: int,
    lines: list[str],
    summary: Mapping[str, Any] | None = None,
) -> None:
    run = held["run"]
    files = {"wandb-history.jsonl": {"offset": start, "content": lines}}
    if summary is not None:
        files["wandb-summary.json"] = {"offset": 0, "content": [json.dumps(summary)]}
    answer = client.post(
        f"/files/{run['entity']}/{run['project']}/{run['id']}/file_stream",
        {"files": files},
    )
    assert answer.status == 200, answer.text


def cut_off(
    client: Client, lines: list[str], summary: Mapping[str, Any] | None = None
) -> tuple[Agent, Any]:
    """A trial that logged so much, was lost, and is in its second attempt."""
    agent = Agent(client, create(client, ONE)["key"])
    held = agent.claim()
    if lines:
        send(client, held, 0, lines, summary)
    agent.end(held, exit_code=-9, cause="node")
    again = agent.claim()
    assert again["attempt"] == 2
    return agent, again


def go_back(agent: Agent, held: Mapping[str, Any], **content: Any) -> Any:
    trial = {"trial": held["trial"]["number"], "attempt": held["attempt"]}
    answer = agent.say("rewind", **trial, **content)
    assert answer.status == 200, answer.text
    return answer.json()["owed_since"]


def steps_of(tracker: Tracker, held: Mapping[str, Any]) -> list[int]:
    return steps_of_run(tracker, held["run"]["key"])


def test_rows_after_the_checkpoint_are_put_aside(client: Client, tracker: Tracker) -> None:
    last = json.dumps({"_step": 9, "_timestamp": T0 + 9, "loss": 9, "late": 1, "v": 0})
    agent, held = cut_off(client, [*rows(range(9)), last], {"loss": 9, "late": 1, "mine": "kept"})
    assert go_back(agent, held, saved_at=T0 + 6.5) is None
    assert steps_of(tracker, held) == list(range(7))
    go_back(agent, held, saved_at=T0 + 6.5)
    assert steps_of(tracker, held) == list(range(7)), "told twice it changes nothing"
    shown = client.get("/api/run", name=held["run"]["id"]).json()
    assert shown["summary"]["loss"] == 3.0
    assert "late" not in shown["summary"]
    assert shown["summary"]["mine"] == "kept"
    (aside,) = shown["archives"]
    assert (aside["reason"], aside["steps"]) == ("rewound", 3)

    # The client that resumes goes on behind the last row, and the curve has no seam.
    send(client, held, 7, rows(range(7, 12), T0 + 100))
    assert steps_of(tracker, held) == list(range(12))


def test_who_begins_anew_has_no_rows(client: Client, tracker: Tracker) -> None:
    agent, held = cut_off(client, rows(range(5)))
    assert go_back(agent, held, saved_at=None) is None
    assert steps_of(tracker, held) == []
    send(client, held, 0, rows(range(3), T0 + 100))
    assert steps_of(tracker, held) == [0, 1, 2]


def test_rows_that_were_never_sent_come_before_the_rewind(client: Client, tracker: Tracker) -> None:
    agent, held = cut_off(client, rows(range(5)))
    assert go_back(agent, held, saved_at=T0 + 7.5) == T0 + 4, "the newest row is older than it"
    assert steps_of(tracker, held) == list(range(5))
    owed = rows(range(8))[3:]
    assert go_back(agent, held, saved_at=T0 + 7.5, rows=owed) is None
    assert steps_of(tracker, held) == list(range(8))
    # A client that resumes reads from the summary where it is.
    summary = client.get("/api/run", name=held["run"]["id"]).json()["summary"]
    assert (summary["_step"], summary["loss"]) == (7, 3.5)


def test_what_has_rows_has_started(client: Client) -> None:
    """Clients that find no `t` begin at step 0, though they are told of the rows."""

    held = Agent(client, create(client, ONE)["key"]).claim()
    send(client, held, 0, rows(range(1)))
    bucket = f'bucket(name: "{held["run"]["id"]}") {{ wandbConfig(keys: ["t"]) }}'
    answer = client.graphql(f'{{ model(name: "birds") {{ {bucket} }} }}')
    assert answer["data"]["model"]["bucket"]["wandbConfig"] == '{"t": {}}'


def test_a_run_all_of_whose_rows_were_brought_in_is_there_to_be_resumed(client: Client) -> None:
    agent, held = cut_off(client, [])
    bucket = f'bucket(name: "{held["run"]["id"]}") {{ historyLineCount }}'
    go_back(agent, held, saved_at=T0 + 2.5, rows=rows(range(3)))
    answer = client.graphql(f'{{ model(name: "birds") {{ {bucket} }} }}')
    assert answer["data"]["model"]["bucket"] == {"historyLineCount": 3}


def test_only_who_has_the_trial_may_rewind_it(client: Client, tracker: Tracker) -> None:
    agent, held = cut_off(client, rows(range(5)))
    go_back(Agent(client, agent.sweep), held, saved_at=None)
    go_back(agent, {**held, "attempt": 1}, saved_at=None)
    assert steps_of(tracker, held) == list(range(5))
    for bad in ({"saved_at": "x"}, {"saved_at": 1.0, "rows": "x"}, {"saved_at": 1.0, "rows": [1]}):
        trial = {"trial": held["trial"]["number"], "attempt": held["attempt"]}
        assert agent.say("rewind", **trial, **bad).status == 400


@pytest.mark.parametrize(("saved", "state"), [(True, "waiting"), (False, "failed")])
def test_a_checkpoint_is_progress_where_nothing_is_logged(
    client: Client, saved: bool, state: str
) -> None:
    agent = Agent(client, create(client, {**ONE, "runyard": {"retries": {"node": 1}}})["key"])
    trial = None
    for _ in range(8):
        held = agent.claim()
        if held["do"] != "run":
            break
        answer = agent.say(
            "ends", trial=1, attempt=held["attempt"], exit_code=-15, cause="time",
            ended_at=T0, saved=saved,
        )  # fmt: skip
        trial = answer.json()["trial"]
    assert trial is not None
    assert (trial["state"], trial["cause"]) == (state, "time")


@pytest.mark.parametrize(("saves", "state"), [(20, "waiting"), (0, "failed")])
def test_a_checkpoint_that_is_further_than_the_last_is_progress_behind_many_rows(
    client: Client, tracker: Tracker, saves: int, state: str
) -> None:
    """The first attempt logged 100 rows behind a checkpoint at 10; the others, 25 behind theirs."""
    sweep = create(client, {**ONE, "runyard": {"retries": {"node": 2}}})
    agent = Agent(client, sweep["key"])
    held = agent.claim()
    send(client, held, 0, rows(range(100)))
    trial = agent.end(held, exit_code=-9, cause="node")
    saved_at, at = T0 + 9.5, 10
    for turn in range(1, 6):
        if trial["state"] != "waiting":
            break
        held = agent.claim()
        assert go_back(agent, held, saved_at=saved_at) is None
        assert steps_of(tracker, held) == list(range(at))
        since = T0 + 1000 * turn
        send(client, held, at, rows(range(at, at + 25), since))
        trial = agent.end(held, exit_code=-9, cause="node")
        if saves:
            saved_at, at = since + saves - 0.5, at + saves
    assert trial["state"] == state


def test_a_row_that_was_logged_after_its_checkpoint_comes_back(
    client: Client, tracker: Tracker
) -> None:
    """Who saves a step before logging it, as Lightning does, does not log that step again."""
    agent, held = cut_off(client, rows(range(9)))
    go_back(agent, held, saved_at=T0 + 6.5)
    assert steps_of(tracker, held) == list(range(7))
    resumed = Process(client, held["run"]["id"])
    resumed.start()
    send(client, held, 7, rows(range(8, 10), T0 + 100))
    assert steps_of(tracker, held) == list(range(10)), "7 is not logged again, 8 is"
    send(client, held, 9, rows(range(10, 12), T0 + 102))
    send(client, held, 9, rows(range(10, 12), T0 + 102))  # Sent twice.
    assert steps_of(tracker, held) == list(range(12))


def test_a_row_right_behind_its_checkpoint_stays_where_nothing_counts(
    client: Client, tracker: Tracker
) -> None:
    """Without `step=` or a counter only the time tells that a row belongs to the saved step."""
    agent, held = cut_off(client, rows(range(9)))
    go_back(agent, held, saved_at=T0 + 6.9)
    assert steps_of(tracker, held) == list(range(8)), "saved, and logged 0.1 s later"
    send(client, held, 8, rows(range(8, 10), T0 + 100))
    assert steps_of(tracker, held) == list(range(10))


def test_rows_of_one_step_that_come_in_pairs_stay_together(
    client: Client, tracker: Tracker
) -> None:
    pairs = [
        json.dumps({"_step": step, "_timestamp": T0 + step // 2 + step % 2 * 0.001, "v": 0})
        for step in range(10)
    ]
    agent, held = cut_off(client, pairs)
    go_back(agent, held, saved_at=T0 + 2.9)
    assert steps_of(tracker, held) == list(range(8))


def counted(epochs: range, first: int, since: float) -> list[str]:
    """Rows without `step=`: the client's own count, and one of the program's."""
    return [
        json.dumps({"_step": first + number, "_timestamp": since + number, "epoch": epoch, "v": 0})
        for number, epoch in enumerate(epochs)
    ]


def epochs_of(tracker: Tracker, held: Mapping[str, Any]) -> list[int]:
    found = tracker._database.read(
        lambda connection: list(read_objects(connection, held["run"]["key"], HISTORY))
    ).result()
    return [row["epoch"] for _, row in found if isinstance(row, dict)]


@pytest.mark.parametrize("again", [6, 7, 8])
def test_where_the_client_counts_the_programs_own_counter_tells(
    client: Client, tracker: Tracker, again: int
) -> None:
    agent, held = cut_off(client, counted(range(8), 0, T0))
    go_back(agent, held, saved_at=T0 + 5.5)
    Process(client, held["run"]["id"]).start()
    send(client, held, 6, counted(range(again, 10), 6, T0 + 100))
    assert epochs_of(tracker, held) == list(range(10))


@pytest.mark.parametrize("again", [6, 7])
def test_a_number_of_any_name_that_grows_evenly_is_a_counter(
    client: Client, tracker: Tracker, again: int
) -> None:
    """On a busy node the row of the saved step comes late: time does not tell that it is not
    logged again, but the samples do."""

    def sampled(steps: range, first: int, since: float) -> list[str]:
        return [
            json.dumps({"_step": first + at, "_timestamp": since + at, "samples": 64 * step})
            for at, step in enumerate(steps)
        ]

    agent, held = cut_off(client, sampled(range(8), 0, T0))
    go_back(agent, held, saved_at=T0 + 5.5)
    Process(client, held["run"]["id"]).start()
    send(client, held, 6, sampled(range(again, 10), 6, T0 + 100))
    rows_found = tracker._database.read(
        lambda connection: list(read_objects(connection, held["run"]["key"], HISTORY))
    ).result()
    samples = [row["samples"] for _, row in rows_found if isinstance(row, dict)]
    assert samples == [64 * step for step in range(10)]


def test_a_row_later_than_its_checkpoint_that_was_never_sent_comes_back(
    client: Client, tracker: Tracker
) -> None:
    """It was saved, logged, and is in the client's file alone."""
    agent, held = cut_off(client, rows(range(5)))
    assert go_back(agent, held, saved_at=T0 + 4.5) == T0 + 4
    assert go_back(agent, held, saved_at=T0 + 4.5, rows=rows(range(7))[5:]) is None
    assert steps_of(tracker, held) == list(range(5))
    Process(client, held["run"]["id"]).start()
    send(client, held, 5, rows(range(6, 9), T0 + 100))
    assert steps_of(tracker, held) == list(range(9)), "5 is not logged again, 6 is"


def test_a_row_comes_back_though_the_attempt_after_it_could_send_nothing(
    client: Client, tracker: Tracker
) -> None:
    """Its first row, which shows what it left out, is in the client's file alone."""
    agent, held = cut_off(client, rows(range(6)))
    go_back(agent, held, saved_at=T0 + 4.5)
    assert steps_of(tracker, held) == list(range(5)), "5 was logged after it was saved"
    agent.end(held, exit_code=-9, cause="node")
    held = agent.claim()
    later = rows(range(6, 9), T0 + 100)
    assert go_back(agent, held, saved_at=T0 + 101.5) == T0 + 4
    go_back(agent, held, saved_at=T0 + 101.5, rows=later)
    assert steps_of(tracker, held) == list(range(8))
    Process(client, held["run"]["id"]).start()
    send(client, held, 8, rows(range(9, 11), T0 + 200))
    assert steps_of(tracker, held) == list(range(11))


@pytest.mark.parametrize("again", [5, 7, 8])
def test_a_program_that_was_cut_off_while_it_saved_goes_on_from_the_checkpoint_before(
    client: Client, tracker: Tracker, again: int
) -> None:
    agent, held = cut_off(client, counted(range(8), 0, T0))
    go_back(agent, held, saved_at=T0 + 100)
    Process(client, held["run"]["id"]).start()
    send(client, held, 8, counted(range(again, 10), 8, T0 + 100))
    send(client, held, 8 + 10 - again, counted(range(10, 12), 18 - again, T0 + 110))
    assert epochs_of(tracker, held) == list(range(12))


def test_a_program_that_begins_anew_keeps_what_it_logged_before(
    client: Client, tracker: Tracker
) -> None:
    agent, held = cut_off(client, counted(range(8), 0, T0))
    go_back(agent, held, saved_at=T0 + 100)
    Process(client, held["run"]["id"]).start()
    send(client, held, 8, counted(range(3), 8, T0 + 100))
    assert epochs_of(tracker, held) == [*range(8), *range(3)]


@pytest.mark.parametrize("name", ["best_epoch", "bad_epochs", "warmup_steps", "seconds"])
def test_numbers_that_grow_for_a_while_are_no_counters(
    client: Client, tracker: Tracker, name: str
) -> None:
    """A trainer logs the epoch of its best score: it stands still while the trainer gets on."""

    def scored(steps: range, best: int, since: float) -> list[str]:
        return [
            json.dumps({"_step": step, "_timestamp": since + step, "v": 0, name: min(step, best)})
            for step in steps
        ]

    agent, held = cut_off(client, scored(range(1, 5), 9, T0))
    go_back(agent, held, saved_at=T0 + 100)
    Process(client, held["run"]["id"]).start()
    send(client, held, 4, scored(range(5, 8), 4, T0 + 100))
    assert steps_of(tracker, held) == [1, 2, 3, 4, 5, 6, 7]


def test_rows_that_came_again_before_stay_aside(client: Client, tracker: Tracker) -> None:
    agent, held = cut_off(client, rows(range(9)))
    go_back(agent, held, saved_at=T0 + 6.5)
    Process(client, held["run"]["id"]).start()
    send(client, held, 7, rows(range(7, 12), T0 + 100))
    agent.end(held, exit_code=-9, cause="node")
    held = agent.claim()
    go_back(agent, held, saved_at=T0 + 200)
    Process(client, held["run"]["id"]).start()
    send(client, held, 12, rows(range(20, 22), T0 + 300))
    assert steps_of(tracker, held) == [*range(12), 20, 21]


def test_rows_that_a_node_sends_when_it_is_heard_again_are_there_once(
    client: Client, tracker: Tracker
) -> None:
    """Its program went on alone and saved its last step. The next attempt brought its rows, found
    nothing left to do, and ended; then the node's own client sends them too."""
    agent = Agent(client, create(client, ONE)["key"])
    held = agent.claim()
    Process(client, held["run"]["id"]).start()
    agent.end(held, exit_code=-9, cause="node")
    again = agent.claim()
    go_back(agent, again, saved_at=T0 + 9.5, rows=rows(range(9)))
    last = Process(client, again["run"]["id"])
    last.start()
    run = again["run"]
    place = f"/files/{run['entity']}/{run['project']}/{run['id']}/file_stream"
    assert client.post(place, {"files": {}, "complete": True, "exitcode": 0}).status == 200
    agent.end(again, exit_code=0)
    assert steps_of(tracker, again) == list(range(9))

    send(client, again, 0, rows(range(6)))
    send(client, again, 6, rows(range(10))[6:])
    send(client, again, 6, rows(range(10))[6:])  # Sent twice.
    assert steps_of(tracker, again) == list(range(10)), "with the one that it held back"
    assert client.get("/api/run", name=run["id"]).json()["state"] == "finished"


@pytest.mark.parametrize("earlier", [False, True])
def test_a_process_that_ends_without_rows_beside_one_that_logs_changes_nothing(
    client: Client, tracker: Tracker, earlier: bool
) -> None:
    agent = Agent(client, create(client, ONE)["key"])
    held = agent.claim()
    if earlier:
        Process(client, held["run"]["id"]).start()
        agent.end(held, exit_code=-9, cause="node")
        held = agent.claim()
    Process(client, held["run"]["id"]).start()
    send(client, held, 0, rows(range(2)))
    Process(client, held["run"]["id"]).start()
    run = held["run"]
    place = f"/files/{run['entity']}/{run['project']}/{run['id']}/file_stream"
    assert client.post(place, {"files": {}, "complete": True, "exitcode": 0}).status == 200
    bare = [json.dumps({"loss": number}) for number in range(3)]
    send(client, held, 2, bare)
    objects = tracker._database.read(
        lambda connection: list(read_objects(connection, held["run"]["key"], HISTORY))
    ).result()
    assert [shown["loss"] for _, shown in objects if isinstance(shown, dict)] == [
        0,
        0.5,
        0,
        1,
        2,
    ], "rows without a step, too"


@pytest.mark.parametrize("first", [5, 6])
@pytest.mark.parametrize("order", [(0, 1), (1, 0), (0, 1, 0, 1)])
def test_a_trial_that_records_to_disk_is_synced_without_what_a_rewind_put_aside(
    client: Client, tracker: Tracker, first: int, order: tuple[int, ...]
) -> None:
    agent, held = cut_off(client, [])
    cut, later = rows(range(10)), rows(range(first, 14), T0 + 100)
    assert go_back(agent, held, saved_at=T0 + 4.5, rows=cut) is None
    assert steps_of(tracker, held) == list(range(5))
    agent.end(held)
    for number in order:
        segment = (cut, later)[number]
        synced = Process(
            client, held["run"]["id"], features=(SYNC,), started_at=int(T0) + 99 * number
        )
        synced.start()
        synced.post({"wandb-history.jsonl": (0, segment)})
        synced.finish()
    assert steps_of(tracker, held) == list(range(14)), "5 is not logged again where 6 is the first"


def test_a_sync_of_an_attempt_that_was_rewound_brings_nothing_back(
    client: Client, tracker: Tracker
) -> None:
    system = [json.dumps({"_timestamp": T0 + at, "system.cpu": at}) for at in range(10)]
    agent, held = cut_off(client, rows(range(10)))
    run = held["run"]
    place = f"/files/{run['entity']}/{run['project']}/{run['id']}/file_stream"
    client.post(place, {"files": {"wandb-events.jsonl": {"offset": 0, "content": system}}})
    go_back(agent, held, saved_at=T0 + 4.5)
    Process(client, run["id"], started_at=int(T0) + 99).start()
    send(client, held, 5, rows(range(5, 14), T0 + 100))
    agent.end(held)
    synced = Process(client, run["id"], features=(SYNC,), started_at=int(T0))
    synced.start()
    # The rows and events that had never been sent are new.
    missing = json.dumps({"_timestamp": T0 + 2.5, "system.cpu": 3})
    synced.post(
        {"wandb-history.jsonl": (0, rows(range(10))), "wandb-events.jsonl": (0, [*system, missing])}
    )
    synced.finish()
    assert steps_of(tracker, held) == list(range(14))
    found = tracker._database.read(
        lambda connection: list(read_objects(connection, run["key"], EVENTS))
    ).result()
    times = [row["_timestamp"] - T0 for _, row in found if isinstance(row, dict)]
    assert times == [0, 1, 2, 2.5, 3, 4]
