"""A node that was cut off is heard again while another one has its trial: keys tell them apart."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

from runyard.server.history.history import HISTORY, read_objects
from runyard.server.sweeps.ledger import leases
from runyard.server.tracker import Tracker
from runyard.server.tracking.streams import Post
from tests.server.a_ledger import LedgerInMemory
from tests.server.asgi import Answer, Client
from tests.server.processes import REWIND, Process
from tests.server.sweeping import Agent, create, trials
from tests.server.test_going_back import ONE, T0, go_back, rows, send


class Keyed(Client):
    """A caller with another key."""

    def __init__(self, client: Client, key: str) -> None:
        self._app, self._loop, self.key = client._app, client._loop, key

    async def exchange(
        self, method: str, path: str, pieces: Sequence[bytes] = (b"",), **more: Any
    ) -> Answer:
        return await super().exchange(method, path, pieces, **{**more, "key": self.key})


class Node(NamedTuple):
    """An agent, and what its programs say."""

    agent: Agent
    client: Keyed

    def begin(self, held: Any, **more: Any) -> Process:
        process = Process(self.client, held["run"]["id"], **more)
        process.start()
        return process

    def complete(self, held: Any, exit_code: int) -> None:
        run = held["run"]
        place = f"/files/{run['entity']}/{run['project']}/{run['id']}/file_stream"
        content = {"complete": True, "exitcode": exit_code}
        assert self.client.post(place, content).status == 200


def node_of(client: Client, sweep: int) -> Node:
    agent = Agent(client, sweep)
    key = agent.say("renew", running=[], wants_key=True).json()["key"]
    return Node(agent, Keyed(client, key))


def lose_leases(tracker: Tracker) -> None:
    write = tracker._database.write
    write(lambda db: db.execute("UPDATE trials SET lease = 1 WHERE state = 'running'")).result()
    write(lambda db: leases.lose_silent(db, time.time())).result()


class Cut(NamedTuple):
    """A trial of two nodes: the first one was cut off after eight rows, the second has it now."""

    sweep: Any
    first: Node
    second: Node
    held: Any


@pytest.fixture
def cut(client: Client, tracker: Tracker) -> Cut:
    sweep = create(client, ONE)
    first, second = node_of(client, sweep["key"]), node_of(client, sweep["key"])
    held = first.agent.claim()
    first.begin(held, started_at=int(T0) - 5)
    send(first.client, held, 0, rows(range(8)), {"loss": 3.5})
    lose_leases(tracker)
    again = second.agent.claim()
    assert again["attempt"] == 2
    return Cut(sweep, first, second, again)


def steps(tracker: Tracker, cut: Cut) -> list[int]:
    return steps_of_key(tracker, cut.held["run"]["key"])


def steps_of_key(tracker: Tracker, run: int, stream: int = HISTORY) -> list[int]:
    found = tracker._database.read(lambda db: list(read_objects(db, run, stream))).result()
    return [row["_step"] for _, row in found if isinstance(row, dict)]


def times(tracker: Tracker, cut: Cut) -> list[float]:
    """When each row was logged, since the first attempt began."""
    run = cut.held["run"]["key"]
    found = tracker._database.read(lambda db: list(read_objects(db, run, HISTORY))).result()
    return [row["_timestamp"] - T0 for _, row in found if isinstance(row, dict)]


def archives_of(client: Client, cut: Cut) -> list[tuple[str, int]]:
    shown = client.get("/api/run", name=cut.held["run"]["id"]).json()
    return [(archive["reason"], archive["steps"]) for archive in shown["archives"]]


def test_rows_of_an_earlier_attempt_replace_none_of_the_present_one(
    client: Client, tracker: Tracker, cut: Cut
) -> None:
    go_back(cut.second.agent, cut.held, saved_at=T0 + 4.5)
    cut.second.begin(cut.held)
    send(cut.second.client, cut.held, 5, rows(range(5, 12), T0 + 100), {"loss": 5.5})
    for _ in range(2):  # Sent twice.
        send(cut.first.client, cut.held, 8, rows(range(14))[8:], {"loss": 99})
    send(cut.first.client, cut.held, 14, rows(range(15))[14:])
    send(cut.second.client, cut.held, 12, rows(range(12, 14), T0 + 107))
    assert steps(tracker, cut) == list(range(14))
    assert times(tracker, cut) == [*range(5), *range(100, 109)]
    assert archives_of(client, cut) == [("rewound", 3), ("late", 7)]
    shown = client.get("/api/run", name=cut.held["run"]["id"]).json()
    assert shown["summary"]["loss"] == 5.5


def test_rows_that_come_before_the_next_program_begins_are_there_once(
    client: Client, tracker: Tracker, cut: Cut
) -> None:
    """Those that were logged before the checkpoint are the run's; the others come again."""
    go_back(cut.second.agent, cut.held, saved_at=T0 + 9.5)
    assert steps(tracker, cut) == list(range(8))
    for _ in range(2):
        send(cut.first.client, cut.held, 8, rows(range(14))[8:])
    assert steps(tracker, cut) == list(range(10))
    bucket = Process(cut.second.client, cut.held["run"]["id"]).start()
    assert bucket["historyLineCount"] == 10
    send(cut.second.client, cut.held, 10, rows(range(10, 15), T0 + 100))
    assert steps(tracker, cut) == list(range(15))
    assert archives_of(client, cut) == [("late", 4)]


def test_rows_that_come_before_the_rewind_are_judged_by_it(tracker: Tracker, cut: Cut) -> None:
    send(cut.first.client, cut.held, 8, rows(range(14))[8:])
    assert steps(tracker, cut) == list(range(14))
    go_back(cut.second.agent, cut.held, saved_at=T0 + 9.5)
    assert steps(tracker, cut) == list(range(10))


@pytest.mark.parametrize("exit_code", [0, 1])
def test_an_end_of_an_earlier_attempt_is_not_the_present_ones(
    client: Client, tracker: Tracker, cut: Cut, exit_code: int
) -> None:
    cut.second.begin(cut.held)
    cut.first.complete(cut.held, exit_code)
    running = [{"trial": cut.held["trial"]["number"], "attempt": 2}]
    assert cut.second.agent.say("renew", running=running).json()["over"] == []
    lose_leases(tracker)
    (trial,) = trials(client, cut.sweep)
    assert (trial["state"], trial["cause"]) == ("waiting", "node")


def test_who_logs_more_has_not_ended(client: Client, tracker: Tracker) -> None:
    """Both attempts came with one key, so nobody knows which of them has ended."""
    sweep = create(client, ONE)
    node = node_of(client, sweep["key"])
    held = node.agent.claim()
    node.begin(held)
    lose_leases(tracker)
    held = node.agent.claim()
    node.begin(held)
    send(node.client, held, 0, rows(range(2)))
    node.complete(held, 0)
    running = [{"trial": held["trial"]["number"], "attempt": 2}]
    assert len(node.agent.say("renew", running=running).json()["over"]) == 1
    send(node.client, held, 1, rows(range(2))[1:])  # Sent twice: it tells nothing.
    assert len(node.agent.say("renew", running=running).json()["over"]) == 1
    send(node.client, held, 2, rows(range(3))[2:])
    assert node.agent.say("renew", running=running).json()["over"] == []
    lose_leases(tracker)
    (trial,) = trials(client, sweep)
    assert (trial["state"], trial["cause"]) == ("waiting", "node")


def test_rows_after_the_end_of_a_trial_do_not_revive_it() -> None:
    ledger = LedgerInMemory()
    number = ledger.claim(ledger.agent("stock"), "stock").trial["number"]
    ledger.begin_client(number)
    ledger.post(number, Post(complete=True, exit_code=0))
    for first in range(2):
        ledger.post(number, Post(rows={HISTORY: (first, rows(range(first, first + 1)))}))
    assert ledger.trial(number)["state"] == "finished"
    assert ledger.run(number)["state"] == "finished"


def test_the_last_rows_of_a_node_that_finished_alone_are_the_runs(
    tracker: Tracker, cut: Cut
) -> None:
    """The next attempt found nothing left to do."""
    go_back(cut.second.agent, cut.held, saved_at=T0 + 20)
    cut.second.begin(cut.held)
    cut.second.complete(cut.held, 0)
    cut.second.agent.end(cut.held, exit_code=0)
    send(cut.first.client, cut.held, 8, rows(range(10))[8:])
    assert steps(tracker, cut) == list(range(10))


def test_rows_with_an_unknown_key_are_the_present_attempts(
    client: Client, tracker: Tracker, cut: Cut
) -> None:
    cut.second.begin(cut.held)
    fresh = node_of(client, cut.sweep["key"]).client
    send(fresh, cut.held, 8, rows(range(8, 10), T0 + 100))
    assert steps(tracker, cut) == list(range(10))


def test_an_agent_that_has_its_trial_again_comes_with_the_same_key(
    client: Client, tracker: Tracker
) -> None:
    node = node_of(client, create(client, ONE)["key"])
    for attempt in range(3):
        held = node.agent.claim()
        if attempt == 1:  # Who rewinds by itself says nothing else before its rows.
            rewind = {"runName": held["run"]["id"], "project": "birds", "metricName": "_step"}
            node.client.graphql(REWIND, {**rewind, "metricValue": 3})
        else:
            node.begin(held)
        send(node.client, held, attempt * 4, rows(range(attempt * 4, attempt * 4 + 4)))
        node.agent.end(held, exit_code=-9, cause="node")
    assert steps_of_key(tracker, held["run"]["key"]) == list(range(12))


def test_a_program_that_names_no_host_is_heard_in_its_agents_second_attempt(
    client: Client, tracker: Tracker
) -> None:
    """With `x_disable_machine_info` it begins no client."""
    node = node_of(client, create(client, ONE)["key"])
    held = node.agent.claim()
    node.begin(held)
    send(node.client, held, 0, rows(range(4)))
    node.agent.end(held, exit_code=-9, cause="node")
    held = node.agent.claim()
    go_back(node.agent, held, saved_at=T0 + 3.5)
    send(node.client, held, 4, rows(range(4, 8), T0 + 100))
    assert steps_of_key(tracker, held["run"]["key"]) == list(range(8))


@pytest.mark.parametrize("told", [None, 1_000])
def test_processes_of_one_attempt_with_several_keys_are_all_heard(
    tracker: Tracker, cut: Cut, told: int | None
) -> None:
    """One of its ranks has a key of its user's, and had it in the first attempt, too."""
    rank = Process(cut.second.client, cut.held["run"]["id"])
    rank.start(internals={"start_time": told})  # Some tell only later when they started.
    own = cut.first.client
    Process(own, cut.held["run"]["id"], started_at=1_001).start(internals={"start_time": told})
    send(own, cut.held, 8, rows(range(8, 10), T0 + 100))
    assert steps(tracker, cut) == list(range(10))


def test_a_new_name_of_an_earlier_attempt_begins_no_client(
    client: Client, tracker: Tracker, cut: Cut
) -> None:
    cut.second.begin(cut.held)
    Process(cut.first.client, cut.held["run"]["id"], started_at=int(T0) - 5).start()
    send(cut.first.client, cut.held, 8, rows(range(14))[8:])
    send(cut.second.client, cut.held, 8, rows(range(8, 10), T0 + 100))
    assert steps(tracker, cut) == list(range(10))
    assert times(tracker, cut)[8:] == [100, 101]


def test_stock_agents_with_keys_of_their_own_do_not_end_each_others_attempt() -> None:
    ledger = LedgerInMemory()
    first, second = ledger.agent("stock"), ledger.agent("stock")
    number = ledger.claim(first, "stock").trial["number"]
    ledger.begin_client(number, key_id="a" * 12)
    ledger.now += leases.LEASE_SECONDS + 40
    leases.lose_silent(ledger.store, ledger.now)
    ledger.claim(second, "stock")
    ledger.begin_client(number, key_id="b" * 12)
    ledger.post(number, Post(complete=True, exit_code=0, key_id="a" * 12))
    assert ledger.trial(number)["state"] == "running"
    ledger.post(number, Post(complete=True, exit_code=0, key_id="b" * 12))
    assert ledger.trial(number)["state"] == "finished"
