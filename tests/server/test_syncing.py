"""`wandb sync`: fills and complements, in any order, as often as anybody likes."""

from __future__ import annotations

import itertools
import json

import pytest

from runyard.server.processes.origins import read_origin
from runyard.server.runs import states
from runyard.server.tracker import Tracker
from runyard.server.tracking import streams
from tests.server.asgi import Client
from tests.server.processes import FINISH, NEWER_SYNC, SYNC, Process, history_of, run_of, steps_of


def _sync(process: Process, steps: range, exit_code: int = 0, *features: int) -> None:
    """A whole sync: from row zero on, with a summary and an end."""
    sync = process.synced(*features)
    sync.start({"segment": process.started_at})
    summary = json.dumps({**process.row(steps[-1]), f"only{steps[0]}": 1})
    sync.post({"wandb-summary.json": (0, [summary])})
    sync.log(0, steps)
    sync.finish(exit_code)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_segments_in_any_order_and_twice(
    client: Client, tracker: Tracker, order: tuple[int, ...]
) -> None:
    segments = [Process(client) for _ in range(3)]
    for number in (*order, *order):
        _sync(segments[number], range(number * 4, number * 4 + 4), exit_code=2 - number)
    assert history_of(tracker) == [(step, segments[step // 4].started_at) for step in range(12)]
    run = run_of(client)
    # The segment that began last has the last word.
    assert (run["state"], run["exit_code"]) == ("finished", 0)
    assert run["config"] == {"segment": segments[2].started_at}
    assert run["summary"]["_step"] == 11
    assert {"only0", "only4", "only8"} <= set(run["summary"])
    assert run["archives"] == []


def test_segments_that_overlap_keep_every_row(client: Client, tracker: Tracker) -> None:
    first, second = Process(client), Process(client)
    _sync(second, range(3, 8))
    _sync(first, range(5))
    assert history_of(tracker) == sorted(
        [(step, first.started_at) for step in range(5)]
        + [(step, second.started_at) for step in range(3, 8)]
    )


@pytest.mark.parametrize("offset", [0, 60])
def test_what_a_crash_left_fills_the_gaps(client: Client, tracker: Tracker, offset: int) -> None:
    process = Process(client)
    process.start()
    process.log(0, range(30))
    process.log(50, range(50, 60))
    sync = process.synced(NEWER_SYNC)
    sync.start()
    sync.log(offset, range(55))  # Newer ones begin at the count they are told.
    sync.finish(1)
    assert steps_of(tracker) == list(range(60))
    assert run_of(client)["steps"] == 60
    assert run_of(client)["archives"] == []


@pytest.mark.parametrize("own", [0, 3])
def test_an_end_that_the_process_reported_stands(client: Client, own: int) -> None:
    process = Process(client)
    process.start()
    process.log(0, range(3))
    process.finish(own)
    for reported in (0, 1):
        _sync(process, range(5), reported)
        run = run_of(client)
        assert (run["exit_code"], run["steps"]) == (own, 5)
        assert run["state"] == ("failed" if own else "finished")


@pytest.mark.parametrize(
    ("features", "reported", "state"),
    [
        ((SYNC,), 0, "crashed"),  # Said of every process that had no end.
        ((SYNC, FINISH), 0, "finished"),
        ((NEWER_SYNC,), 0, "finished"),
        ((NEWER_SYNC,), 1, "failed"),
    ],
)
def test_the_end_of_a_process_that_fell_silent(
    client: Client, tracker: Tracker, features: tuple[int, ...], reported: int, state: str
) -> None:
    process = Process(client)
    process.start()
    process.log(0, range(3))
    tracker._database.write(lambda c: streams.mark_silent(c, 2**40)).result()
    assert run_of(client)["state"] == "crashed"
    _sync(process, range(5), reported, *features)
    run = run_of(client)
    assert (run["state"], run["steps"]) == (state, 5)


def test_a_run_that_is_still_being_written(client: Client, tracker: Tracker) -> None:
    process = Process(client)
    process.start()
    process.log(0, range(10))
    sync = process.synced(NEWER_SYNC)
    sync.start()
    sync.log(10, range(14))
    process.log(10, range(10, 16))
    sync.finish(1)
    assert run_of(client)["state"] == "running"
    process.log(16, range(16, 20))
    process.finish(0)
    assert steps_of(tracker) == list(range(20))
    assert run_of(client)["state"] == "finished"


def test_an_offline_run_that_is_still_being_written(client: Client, tracker: Tracker) -> None:
    process = Process(client)
    _sync(process, range(5), 1, NEWER_SYNC)
    assert run_of(client)["state"] == "failed"
    _sync(process, range(9), 0, NEWER_SYNC)
    assert steps_of(tracker) == list(range(9))
    assert run_of(client)["state"] == "finished"


def test_a_sync_that_only_later_shows_to_be_one_loses_nothing(
    client: Client, tracker: Tracker
) -> None:
    process = Process(client)
    process.start()
    process.log(0, range(5))
    process.post({"wandb-summary.json": (0, ['{"best": 1}'])})
    process.finish()
    sync = Process(client, program="odd", started_at=process.started_at)
    sync.start()
    assert run_of(client)["steps"] == 0
    sync.log(0, range(3))
    sync.features.append(NEWER_SYNC)
    sync.start(host=None)
    sync.log(3, range(3, 7))
    sync.finish(1)
    assert steps_of(tracker) == list(range(7))
    run = run_of(client)
    assert (run["archives"], run["summary"]) == ([], {"best": 1})


def test_system_metrics_come_once_and_in_order(client: Client, tracker: Tracker) -> None:
    from runyard.server.history.history import EVENTS, read_objects

    def lines(process: Process, numbers: range) -> list[str]:
        return [json.dumps({"_timestamp": process.started_at + n, "n": n}) for n in numbers]

    process = Process(client)
    process.start()
    process.post({"wandb-events.jsonl": (0, lines(process, range(3)))})
    sync = process.synced()
    sync.start()
    for _ in range(2):
        sync.post({"wandb-events.jsonl": (0, lines(process, range(6)))})
    rows = tracker._database.read(lambda c: list(read_objects(c, 1, EVENTS))).result()
    assert [row["n"] for _, row in rows if isinstance(row, dict)] == list(range(6))


def test_the_console_of_a_synced_process_comes_once(client: Client) -> None:
    first, second = Process(client), Process(client)
    first.start()
    first.post({"output.log": (0, ["2026-01-02T03:04:05 a"])})
    for process, lines in ((second, ["c"]), (first, ["a", "b"]), (second, ["c", "d"])):
        sync = process.synced()
        sync.start()
        # Newer ones stamp the lines with the time of the sync.
        sync.post({"output.log": (0, [f"2026-09-09T09:09:09 {line}" for line in lines])})
        sync.finish()
    assert client.get("/api/runs/1/console").json()["text"] == "a\nb\nc\nd\n"


def test_a_sync_that_died_does_not_hold_up_who_comes_after(
    client: Client, tracker: Tracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = Process(client)
    sync = process.synced()
    opaque = sync.start()["id"]
    sync.log(0, range(5))
    monkeypatch.setattr(states, "SILENT_SECONDS", 0.0)
    later = Process(client)
    later.start(id=opaque)
    later.log(5, [5])
    assert steps_of(tracker) == list(range(6))


@pytest.mark.parametrize(
    ("config", "program", "is_sync"),
    [
        ('{"_wandb": {"value": {"t": {"3": [42]}}}}', None, True),
        ('{"_wandb": {"value": {"t": {"3": [4, 14]}}}}', "train.py", True),
        ('{"_wandb": {"value": {"t": {"3": [14]}}}}', "/some/bin/wandb", True),
        ('{"_wandb": {"value": {"t": {"3": [14]}}}}', "-m wandb.__main__", True),
        ('{"_wandb": {"value": {"t": {"3": [14]}}}}', "-m wandb_trainer", False),
        ('{"_wandb": {"value": {"t": {"3": [14]}}}}', "wandb/train.py", False),
        ('{"_wandb": {"value": {"t": {"3": "42"}}}}', None, False),
        ('{"_wandb": {"value": {"t": 42}}}', None, False),
        ('{"_wandb": 3}', None, False),
        (None, None, False),
    ],
)
def test_what_gives_a_sync_away(config: str | None, program: str | None, is_sync: bool) -> None:
    assert read_origin(config, program).is_sync is is_sync


def test_a_program_that_syncs_by_itself_numbers_the_rows_of_each_segment(
    client: Client, tracker: Tracker
) -> None:
    """Not by the command: that it was a sync is only told when the segment's rows are here."""
    for number in range(3):
        segment = Process(client)
        assert segment.start()["historyLineCount"] == number
        segment.log(number, range(number, number + 1))
        segment.features = [NEWER_SYNC, FINISH]
        segment.start(host=None)
        segment.finish(0)
    assert steps_of(tracker) == [0, 1, 2]
    assert run_of(client)["archives"] == []
    # Another program with that id begins anew.
    assert Process(client, program="other.py").start()["historyLineCount"] == 0
