"""A trial that was given up as lost, and is here after all: nothing is left of the mistake."""

from __future__ import annotations

import json

import pytest

from runyard.server.sweeps.ledger import agents, leases, settling
from runyard.server.tracking.streams import Post
from tests.server.a_ledger import LedgerInMemory

LATE = leases.LEASE_SECONDS + 40


@pytest.fixture
def ledger() -> LedgerInMemory:
    return LedgerInMemory()


def _lose(ledger: LedgerInMemory, agent: int) -> tuple[int, int]:
    """A trial, held for as long as a lease holds without a word, and so given up."""
    handed = ledger.claim(agent)
    ledger.now += LATE
    leases.lose_silent(ledger.store, ledger.now)
    number: int = handed.trial["number"]
    assert ledger.trial(number)["state"] == "waiting"
    assert ledger.run(number)["state"] == "preempted"
    return number, handed.attempt


def test_who_renews_late_has_the_trial_as_if_nothing_had_been(ledger: LedgerInMemory) -> None:
    agent = ledger.agent()
    number, attempt = _lose(ledger, agent)
    assert ledger.renew(agent, (number, attempt)) == []
    trial, run = ledger.trial(number), ledger.run(number)
    assert trial["state"] == "running"
    assert (trial["seconds"], json.loads(trial["tries"]), trial["cause"]) == (0, {}, None)
    assert (run["state"], run["ended_at"]) == ("running", None)
    (row,) = ledger.attempts(number)
    assert (row["ended_at"], row["cause"]) == (None, None)


def test_seconds_and_tries_are_those_of_the_one_attempt_there_was(ledger: LedgerInMemory) -> None:
    agent = ledger.agent()
    number, attempt = _lose(ledger, agent)
    ledger.renew(agent, (number, attempt))
    ledger.now += 10
    ledger.end(agent, number, attempt, 143, "time")
    trial = ledger.trial(number)
    assert trial["seconds"] == LATE + 10
    assert json.loads(trial["tries"]) == {"time": 1}


def test_an_older_attempt_whose_end_is_told_meanwhile_keeps_its_seconds(
    ledger: LedgerInMemory,
) -> None:
    first, second = ledger.agent(), ledger.agent()
    before = ledger.claim(first)
    number: int = before.trial["number"]
    agents.leave(ledger.store, first, "", ledger.now)  # Without a word of how it ended.
    assert _lose(ledger, second)[0] == number
    ledger.end(first, number, before.attempt, 75)
    assert ledger.renew(second, (number, before.attempt + 1)) == []
    assert ledger.trial(number)["seconds"] == LATE


def test_an_end_that_is_told_late_takes_the_trial_back_too(ledger: LedgerInMemory) -> None:
    agent = ledger.agent()
    number, attempt = _lose(ledger, agent)
    ledger.end(agent, number, attempt, 0, ended_at=ledger.now - 50)
    trial = ledger.trial(number)
    assert (trial["state"], trial["seconds"]) == ("finished", LATE - 50)
    assert json.loads(trial["tries"]) == {}
    assert ledger.run(number)["state"] == "finished"


def test_steps_at_the_loss_are_no_progress_that_is_used_up(ledger: LedgerInMemory) -> None:
    """What was logged before a mistaken loss forgives the real cut that comes after."""
    agent = ledger.agent()
    handed = ledger.claim(agent)
    number: int = handed.trial["number"]
    ledger.begin_client(number)
    ledger.post(number, Post(rows={0: (0, ['{"loss": 1.0}'] * 3)}))
    ledger.now += LATE
    leases.lose_silent(ledger.store, ledger.now)
    ledger.renew(agent, (number, handed.attempt))
    ledger.end(agent, number, handed.attempt, 143, "time")
    assert json.loads(ledger.trial(number)["tries"]) == {}


def test_a_client_that_is_heard_again_takes_its_trial_back(ledger: LedgerInMemory) -> None:
    agent = ledger.agent("stock")
    handed = ledger.claim(agent, "stock")
    number: int = handed.trial["number"]
    ledger.begin_client(number)
    ledger.now += LATE
    leases.lose_silent(ledger.store, ledger.now)
    assert ledger.run(number)["state"] == "preempted"
    ledger.post(number, Post())
    assert ledger.run(number)["state"] == "running"
    assert (ledger.trial(number)["state"], ledger.trial(number)["seconds"]) == ("running", 0)


def test_who_comes_when_somebody_else_has_it_hears_so(ledger: LedgerInMemory) -> None:
    first, second = ledger.agent(), ledger.agent()
    number, attempt = _lose(ledger, first)
    again = ledger.claim(second)
    assert (again.trial["number"], again.attempt) == (number, attempt + 1)
    assert ledger.renew(first, (number, attempt)) == ["lost"]
    assert ledger.trial(number)["agent"] == second


def test_a_late_end_corrects_the_seconds_of_its_own_attempt(ledger: LedgerInMemory) -> None:
    first, second = ledger.agent(), ledger.agent()
    number, attempt = _lose(ledger, first)
    ledger.claim(second)
    ledger.end(first, number, attempt, 0, ended_at=ledger.now - LATE + 5)
    assert ledger.trial(number)["state"] == "running"
    ledger.now += 3
    ledger.end(second, number, attempt + 1, 0)
    assert ledger.trial(number)["seconds"] == 5 + 3


def test_the_end_of_an_older_client_is_not_the_end_of_the_newer_attempt(
    ledger: LedgerInMemory,
) -> None:
    """W&B's agents have no attempts of ours: which process speaks says the client's number."""
    first, second = ledger.agent("stock"), ledger.agent("stock")
    number: int = ledger.claim(first, "stock").trial["number"]
    ledger.begin_client(number)
    ledger.now += LATE
    leases.lose_silent(ledger.store, ledger.now)
    assert ledger.claim(second, "stock").trial["number"] == number
    ledger.post(number, Post(complete=True, exit_code=0))
    assert (ledger.trial(number)["state"], ledger.trial(number)["agent"]) == ("running", second)
    ledger.begin_client(number)
    ledger.post(number, Post(complete=True, exit_code=0))
    assert ledger.trial(number)["state"] == "finished"


def test_a_trial_that_was_stopped_meanwhile_is_not_taken_back(ledger: LedgerInMemory) -> None:
    agent = ledger.agent()
    number, attempt = _lose(ledger, agent)
    settling.ask_to_end(ledger.store, ledger.run(number), "stopped", ledger.now)
    assert ledger.renew(agent, (number, attempt)) == ["lost"]
    assert ledger.trial(number)["state"] == "stopped"
