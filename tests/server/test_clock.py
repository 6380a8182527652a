"""The machine's clock was ahead, and is set right: no lease stays in the future."""

from __future__ import annotations

import time

import pytest

from runyard.home import Home
from runyard.server.sweeps.ledger import agents, leases, settling
from runyard.server.sweeps.serving.quiet_period import QuietPeriod
from runyard.server.tracker import Tracker
from tests.server.a_ledger import LedgerInMemory
from tests.server.asgi import KEY, Client
from tests.server.sweeping import Agent, create

AHEAD = 2 * 3600.0
LEASE = leases.LEASE_SECONDS


def _leased_ahead() -> tuple[LedgerInMemory, int]:
    """A trial that was claimed and renewed while the clock was two hours ahead."""
    ledger = LedgerInMemory()
    agent = ledger.agent()
    ledger.now += AHEAD
    ledger.claim(agent)
    ledger.renew(agent, (1, 1))
    ledger.now -= AHEAD
    return ledger, agent


def test_a_renewal_brings_a_lease_back_to_the_present() -> None:
    ledger, agent = _leased_ahead()
    ledger.renew(agent, (1, 1))
    assert ledger.trial(1)["lease"] == ledger.now + LEASE


def test_a_step_back_is_noticed_before_anybody_renews() -> None:
    """`watch_leases` sees that the time went back, and calls `extend_all`."""
    ledger, _ = _leased_ahead()
    leases.extend_all(ledger.store, ledger.now)
    assert ledger.trial(1)["lease"] == ledger.now + LEASE
    ledger.now += LEASE + 1
    leases.lose_silent(ledger.store, ledger.now)
    assert ledger.trial(1)["state"] == "waiting"


def test_a_restart_leaves_no_lease_in_the_future(
    client: Client, tracker: Tracker, home: Home
) -> None:
    Agent(client, create(client)["key"]).claim()
    ahead = time.time() + AHEAD
    tracker._database.write(
        lambda store: store.execute("UPDATE trials SET lease = ?", (ahead,))
    ).result()
    tracker.close()
    again = Tracker(home)
    again.open(KEY)
    try:
        lease = again._database.read(
            lambda store: store.execute("SELECT lease FROM trials").fetchone()[0]
        ).result()
    finally:
        again.close()
    assert lease <= time.time() + LEASE


def test_an_agent_that_was_quiet_while_the_clock_was_ahead_is_looked_after_again() -> None:
    now = 1000.0
    assert QuietPeriod(frozenset(), 1, now + LEASE / 4).holds((), 1, now)
    assert not QuietPeriod(frozenset(), 1, now + AHEAD).holds((), 1, now)


def test_a_stop_that_was_asked_for_in_the_future_is_told() -> None:
    ledger, agent = _leased_ahead()
    ledger.begin_client(1)
    settling.ask_to_end(ledger.store, ledger.run(1), "stopped", ledger.now + AHEAD)
    assert ledger.renew(agent, (1, 1)) == ["stopped"]


def test_an_agent_that_was_heard_in_the_future_is_not_there_for_hours() -> None:
    ledger, agent = _leased_ahead()
    leases.extend_all(ledger.store, ledger.now)
    row = agents.by_key(ledger.store, agent)
    assert row is not None
    assert agents.is_heard(row, ledger.now)
    assert not agents.is_heard(row, ledger.now + LEASE + 1)


def test_the_seconds_of_an_attempt_that_began_in_the_future_are_none() -> None:
    ledger, agent = _leased_ahead()
    ledger.now += 5
    ledger.end(agent, 1, 1, 0)
    assert ledger.trial(1)["seconds"] == pytest.approx(0)
    (attempt,) = ledger.attempts(1)
    assert attempt["ended_at"] >= attempt["started_at"]


def test_a_run_that_was_heard_in_the_future_falls_silent_in_time() -> None:
    ledger, _ = _leased_ahead()
    ledger.store.execute("UPDATE runs SET heartbeat_at = ?", (ledger.now + AHEAD,))
    leases.extend_all(ledger.store, ledger.now)
    assert ledger.run(1)["heartbeat_at"] == ledger.now
