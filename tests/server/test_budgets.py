"""Budgets: no trial begins that goes beyond what a sweep may use, whoever asks."""

from __future__ import annotations

import heapq
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runyard.search.budget import BadBudget, parse_budget
from runyard.server.sweeps.ledger import agents, budgets, sweep_changes, sweeps
from runyard.server.sweeps.policy.budget_account import OpenTrial, balance
from tests.server.a_ledger import LedgerInMemory
from tests.server.asgi import Client
from tests.server.sweeping import Agent, create

HOUR = 3600.0


def _config(budget: str, **more: Any) -> dict[str, Any]:
    return {
        "method": "grid",
        "metric": {"name": "loss"},
        "parameters": {"x": {"values": list(range(100))}},
        "runyard": {"stop_after_failures": 0, "budget": budget, **more},
    }


@pytest.mark.parametrize(
    ("text", "hours", "unit"),
    [("200 gpu-hours", 200.0, "gpu-hours"), ("300gpu-hours", 300.0, "gpu-hours"),
     ("1.5 GPU hours", 1.5, "gpu-hours"), ("12 hours", 12.0, "hours"), ("1h", 1.0, "hours")],
)  # fmt: skip
def test_a_budget_is_a_number_and_a_unit(text: str, hours: float, unit: str) -> None:
    budget = parse_budget(text)
    assert (budget.hours, budget.unit) == (hours, unit)
    assert parse_budget(str(budget)) == budget


@pytest.mark.parametrize(
    ("value", "why"),
    [(200, "no unit"), ("200", "no budget"), ("12 cpu-hours", "not of CPUs"), ("0 hours", "than 0"),
     ("-1 hours", "no budget"), ("30 node-hours", "nodes"), (None, "number"), (True, "number")],
)  # fmt: skip
def test_what_is_no_budget_is_told_with_its_mend(value: object, why: str) -> None:
    with pytest.raises(BadBudget, match=why) as error:
        parse_budget(value)
    assert "gpu-hours" in error.value.mend


def test_a_trial_that_says_how_long_it_takes_is_believed_before_one_has_ended() -> None:
    budget = parse_budget("10 gpu-hours")
    at_work = [OpenTrial(HOUR, 0.5 * HOUR, left=3 * HOUR, share=0.5)]
    account = balance(
        budget, ended=0, ended_seconds=0, ended_gpu_seconds=0, other=HOUR, open_trials=at_work
    )
    assert (account.used, account.planned, account.each) == (1.5, 3.0, 2.0)
    assert account.has_room()
    assert account.has_room(2)
    assert not account.has_room(3)


def _end(ledger: LedgerInMemory, agent: int, trial: int, share: float | None = None) -> None:
    usage = None if share is None else f'{{"gpu_share": {share}}}'
    agents.end_attempt(
        ledger.store, agent, trial, 1, exit_code=0, cause=None, ended_at=ledger.now,
        now=ledger.now, usage=usage,
    )  # fmt: skip


def test_it_ends_where_no_trial_fits_any_more_and_says_so() -> None:
    ledger = LedgerInMemory(_config("10 gpu-hours"))
    agent = ledger.agent()
    for _ in range(3):  # Three hours each, two on a GPU: 1.5 GPU-hours.
        first, second = ledger.claim(agent), ledger.claim(agent)
        ledger.now += 3 * HOUR
        _end(ledger, agent, first.trial["number"], 0.5)
        _end(ledger, agent, second.trial["number"], 0.5)
    row = sweeps.get(ledger.store, ledger.sweep)
    assert (row["state"], row["cause"]) == (
        "finished", "its budget of 10 GPU-hours is used: 9",
    )  # fmt: skip
    sweep_changes.set_budget(ledger.store, ledger.sweep, "10.6 gpu-hours", ledger.now)
    row = sweeps.get(ledger.store, ledger.sweep)
    assert (row["state"], row["cause"]) == ("running", None)
    assert ledger.claim(agent).trial["number"] == 7
    assert ledger.hand_out(ledger.claim_of(agent)) == [None]


def test_what_was_interrupted_goes_on_until_the_budget_itself_is_used() -> None:
    ledger = LedgerInMemory(_config("10 hours"))
    agent = ledger.agent()
    handed = ledger.claim(agent)
    ledger.now += 8 * HOUR
    ledger.end(agent, handed.trial["number"], 1, -15, "time")
    again = ledger.claim(agent)
    assert again.trial["number"] == handed.trial["number"]
    ledger.now += 3 * HOUR
    ledger.end(agent, again.trial["number"], again.attempt, -15, "time")
    row = sweeps.get(ledger.store, ledger.sweep)
    assert (row["state"], row["cause"]) == ("finished", "its budget of 10 hours is used: 11.0")
    assert ledger.trial(1)["state"] == "canceled"
    sweep_changes.set_budget(ledger.store, ledger.sweep, "20 hours", ledger.now)
    assert ledger.claim(agent).trial["number"] == 1


def test_a_deleted_run_and_a_failed_one_have_used_what_they_used() -> None:
    ledger = LedgerInMemory(_config("4 hours"))
    agent = ledger.agent()
    for code in (0, 1):
        handed = ledger.claim(agent)
        ledger.now += HOUR
        ledger.end(agent, handed.trial["number"], 1, code)
    account = budgets.account(ledger.store, sweeps.get(ledger.store, ledger.sweep), ledger.now)
    assert account is not None
    assert (account.used, account.each) == (2.0, 1.0)


@settings(max_examples=60, deadline=None)
@given(
    slots=st.integers(1, 6),
    share=st.sampled_from((0.25, 0.5, 1.0, 2.0)),
    limit=st.floats(0.5, 40),
    lengths=st.lists(st.floats(0.05, 4.0), min_size=5, max_size=30),
    unit=st.sampled_from(("gpu-hours", "hours")),
)
def test_two_agents_go_beyond_by_no_more_than_what_runs(
    slots: int, share: float, limit: float, lengths: list[float], unit: str
) -> None:
    """Whatever the lengths: nothing is handed out once as much is used, and so what there is too
    much at the end is a part of the trials that then ran."""
    ledger = LedgerInMemory(_config(f"{limit:.6f} {unit}", retries=0))
    two, rate = (ledger.agent(), ledger.agent()), share if unit == "gpu-hours" else 1.0
    limit = float(f"{limit:.6f}")
    began: dict[int, float] = {}
    ends: list[tuple[float, int, int]] = []
    ended = taken = 0
    used_ended = 0.0

    def used() -> float:
        return used_ended + sum(ledger.now - at for at in began.values()) / HOUR * rate

    while True:
        for agent in two:
            free = slots - sum(other == agent for _, _, other in ends)
            claims = [ledger.claim_of(agent) for _ in range(free)]
            before, running = used(), len(began)
            for handed in ledger.hand_out(*claims):
                if handed is None:
                    continue
                assert before < limit, "it was used already"
                number = handed.trial["number"]
                agents.renew(
                    ledger.store, agent, [(number, 1)], ledger.now,
                    usage={(number, 1): f'{{"gpu_share": {share}}}'},
                )  # fmt: skip
                began[number] = ledger.now
                length = lengths[taken % len(lengths)] * HOUR
                taken += 1
                heapq.heappush(ends, (ledger.now + length, number, agent))
            assert running + free >= len(began)
        if not ends:
            break
        ledger.now, number, agent = heapq.heappop(ends)
        used_ended += (ledger.now - began.pop(number)) / HOUR * rate
        ended += 1
        _end(ledger, agent, number, share)
    row = sweeps.get(ledger.store, ledger.sweep)
    account = budgets.account(ledger.store, row, ledger.now)
    assert account is not None
    assert account.used == pytest.approx(used_ended)
    assert row["state"] == "finished"
    assert used_ended <= limit + 2 * slots * max(lengths) * rate
    if taken < 100:
        assert row["cause"].startswith("its budget of ")


def test_an_agent_hears_why_and_the_record_tells_it(client: Client) -> None:
    sweep = create(client, _config("1 hours"))
    assert sweep["budget"] == {"limit": 1.0, "unit": "hours", "used": 0.0, "planned": 0.0}
    agent = Agent(client, sweep["key"])
    claim = agent.claim()
    shown = client.post(f"/api/sweeps/{sweep['key']}/budget", {"budget": "0.000001 hours"}).json()
    assert shown["state"] == "running", "what runs goes on"
    time.sleep(0.02)
    agent.end(claim)
    answer = agent.claim()
    assert answer["do"] == "exit"
    assert answer["why"].startswith("its budget of 0.000001 hours is used")
    refused = client.post(f"/api/sweeps/{sweep['key']}/budget", {"budget": "5 cpu-hours"})
    assert refused.status == 400
    assert "write 200 gpu-hours" in refused.json()["error"]
    gone = client.post(f"/api/sweeps/{sweep['key']}/budget", {"budget": None}).json()
    assert (gone["state"], gone["budget"]) == ("running", None)
