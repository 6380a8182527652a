"""What an agent asks for when a program has ended, and what it makes of the answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from runyard.node.agent.claiming import Claiming
from runyard.node.agent.draining import Draining
from runyard.node.agent.work import Work
from runyard.node.link.channel import Answer

HELD = {"trial": 1, "number": 1, "run": 5, "exit_code": 0, "cause": None, "ended_at": 1.0}
NEXT = {"do": "run", "trial": {"number": 2, "name": "next"}, "attempt": 1}


def stub(**fields: Any) -> Any:
    """Whatever has these."""
    return SimpleNamespace(**fields)


class StubWork(SimpleNamespace):
    """What of `Work` is looked at here."""

    begins_no_more = Work.begins_no_more


def stub_work(**fields: Any) -> Any:
    return StubWork(**fields)


class Line:
    """A connection to the server that keeps what is said."""

    def __init__(self) -> None:
        self.said: list[tuple[str, Any]] = []
        self.waiting: list[Any] = []

    def post(self, path: str, content: Any, on_answer: Any, *, seconds: float = 30.0) -> None:
        self.said.append((path.rpartition("/")[2], content))
        self.waiting.append(on_answer)

    def take_back_last(self) -> None:
        self.said.pop()
        self.waiting.pop()

    def answer(self, **content: Any) -> None:
        self.waiting.pop(0)(Answer(200, json.dumps(content).encode()))


class Desk:
    """An agent with one slot, whose first trial has just ended."""

    def __init__(self, *, claims_with_end: bool = True) -> None:
        self.line = Line()
        self.slot = stub(
            channel=self.line, token=None, claims_with_end=False, is_closed=False, rests=False,
            is_preparing=False,
        )  # fmt: skip
        end = stub(useful_seconds=lambda _now: None)
        self.work = stub_work(
            agent="9", slots=[self.slot], count=None, taken={1}, is_draining=False,
            is_finishing=False, end=end, warm_starts=None,
        )  # fmt: skip
        occupancy = stub(may_ask=lambda _slot: True)
        ending: Any = None
        self.failures: list[str] = []
        self.told: list[int] = []
        self.claiming = Claiming(self.work, occupancy, ending, self.failures.append)
        attempt = stub(claim={"claims_with_end": claims_with_end}, record=stub(content=HELD))
        self.on_end: Callable[[Answer], None] = lambda answer: self.told.append(answer.status)
        self.claiming._tell_end(self.slot, attempt, lambda answer: self.on_end(answer))

    @property
    def words(self) -> list[str]:
        return [word for word, _ in self.line.said]


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    begun: list[Any] = []
    monkeypatch.setattr(Claiming, "_begin", lambda _self, _slot, claim: begun.append(claim))
    return begun


def test_the_end_and_the_claim_are_one_request(begun: list[Any]) -> None:
    desk = Desk()
    assert desk.words == ["ends"]
    desk.line.answer(trial=None, claim=NEXT)
    assert (desk.told, begun, desk.slot.token) == ([200], [NEXT], None)
    assert desk.words == ["ends"]


def test_what_cannot_be_had_at_once_is_asked_for_again(begun: list[Any]) -> None:
    desk = Desk()
    desk.line.answer(trial=None, claim=None)
    (_, end), (_, claim) = desk.line.said
    assert desk.words == ["ends", "claim"]
    assert claim == end["claim"], "the same token: the server may have handed it out"
    desk.line.answer(**NEXT)
    assert begun == [NEXT]


def test_a_search_that_learns_is_asked_behind_the_end(begun: list[Any]) -> None:
    desk = Desk(claims_with_end=False)
    assert desk.words == ["ends", "claim"]
    assert "claim" not in desk.line.said[0][1]


def test_an_agent_that_stops_meanwhile_loses_no_end_and_gives_the_trial_back() -> None:
    desk = Desk()
    desk.work.is_draining = True
    desk.claiming.ask_at_once()
    assert desk.words == ["ends"], "the end is not taken back with its claim"
    desk.line.answer(trial=None, claim=NEXT)
    assert desk.words == ["ends", "ends"]
    assert desk.line.said[1][1]["trial"] == 2
    assert desk.line.said[1][1]["cause"] == "preempted"
    assert desk.slot.is_closed


@pytest.mark.parametrize("claims_with_end", [True, False])
def test_asked_to_begin_no_more_while_a_claim_is_on_its_way_the_trial_goes_back(
    begun: list[Any], claims_with_end: bool
) -> None:
    desk = Desk(claims_with_end=claims_with_end)
    draining = Draining(desk.work, is_chained=False)
    draining.claiming = desk.claiming
    draining._finish()
    draining._finish()
    if claims_with_end:
        desk.line.answer(trial=None, claim=NEXT)
    else:
        assert desk.line.said[1][1]["wait"] == 0, "it does not wait for a trial any more"
        desk.line.answer(trial=None)
        desk.line.answer(**NEXT)
    assert begun == []
    assert desk.line.said[-1][1]["cause"] == "preempted"
    assert desk.slot.is_closed


def test_an_agent_that_stops_meanwhile_and_got_nothing_asks_once_more() -> None:
    """The first request may have brought a trial, and its answer been lost."""
    desk = Desk()
    desk.work.is_draining = True
    desk.line.answer(trial=None, claim=None)
    (_, end), (_, claim) = desk.line.said
    assert desk.words == ["ends", "claim"]
    assert claim == {"token": end["claim"]["token"], "wait": 0}
    desk.line.answer(do="wait", why="nothing is left")
    assert desk.slot.is_closed
    assert desk.slot.token is None


@pytest.mark.parametrize("claims_with_end", [True, False])
def test_a_refused_end_ends_the_agent(claims_with_end: bool) -> None:
    """As with a key that was revoked: whoever hears of it looks at what the slots wait for."""
    desk = Desk(claims_with_end=claims_with_end)

    def end_agent(_answer: Answer) -> None:
        desk.work.is_draining = True
        desk.claiming.ask_at_once()

    desk.on_end = end_agent
    desk.line.waiting.pop(0)(Answer(401, b'{"error": "this key was revoked"}'))
    assert desk.words == (["ends"] if claims_with_end else ["ends", "claim"])
    if not claims_with_end:
        desk.line.waiting.pop(0)(Answer(401, b'{"error": "this key was revoked"}'))
    assert desk.slot.is_closed
    assert desk.slot.token is None


def test_a_refused_claim_ends_the_agent() -> None:
    desk = Desk(claims_with_end=False)
    desk.line.answer(trial=None)
    desk.line.waiting.pop(0)(Answer(404, b'{"error": "there is no agent 9"}'))
    assert desk.failures == ["there is no agent 9"]
    assert desk.slot.is_closed
