"""What was handed out a moment ago is not suggested again, though the ledger has not got it yet."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from runyard.search.sweep import read_sweep
from runyard.server.sweeps.ledger.results import View
from runyard.server.sweeps.serving.handed_out import HandedOut
from runyard.server.sweeps.serving.suggestions import Demand, Suggestions

CONFIG: dict[str, Any] = {
    "method": "bayes",
    "metric": {"name": "loss"},
    "parameters": {"x": {"min": 0.0, "max": 1.0}},
}


class Worker:
    """In place of the search's process: its answer follows from the question alone, as there."""

    async def suggest(
        self, pending: Sequence[str], count: int, number: int
    ) -> list[tuple[float, ...]]:
        return [(number / 100 + len(pending) / 1000,)] * count


def test_a_point_is_not_suggested_twice_while_its_claim_is_under_way() -> None:
    async def claims() -> list[tuple[float, ...]]:
        sweep, _ = read_sweep(CONFIG)
        assert sweep is not None
        handed_out = HandedOut(sweep.space, 1)
        suggestions = Suggestions(None, 1, sweep, CONFIG, 1, handed_out)  # type: ignore[arg-type]
        suggestions._worker = Worker()  # type: ignore[assignment]
        suggestions.stir = lambda: None  # type: ignore[method-assign]
        before_the_claim = View(at_work=2, setting=5, pending=["[0.3]", "[0.4]"])
        suggestions._ready = await suggestions._suggest(before_the_claim, 1, 5)
        demand = Demand(count=1, setting=5, others_at_work=2, results=0)
        (taken,) = await suggestions.take(demand, asyncio.Event())
        # The claim is not in the ledger yet: whoever looks there sees the moment before.
        (made,) = await suggestions._suggest(before_the_claim, 1, 5)
        suggestions.give_back([])
        (later,) = await suggestions._suggest(before_the_claim, 1, 5)
        return [taken, made.point, later.point]

    taken, made, later = asyncio.run(claims())
    assert made != taken
    assert later == taken, "once a claim is over, the ledger alone counts"


class Slow(Worker):
    """Waits before it answers, and remembers what it was told of as pending."""

    def __init__(self) -> None:
        self.pending: list[list[str]] = []
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def suggest(
        self, pending: Sequence[str], count: int, number: int
    ) -> list[tuple[float, ...]]:
        self.pending.append(list(pending))
        await self.go_on.wait()
        return [(number / 100 + (index + len(self.pending) * 10) / 1000,) for index in range(count)]


def suggestions_of(worker: Worker) -> Suggestions:
    sweep, _ = read_sweep(CONFIG)
    assert sweep is not None
    suggestions = Suggestions(None, 1, sweep, CONFIG, 1, HandedOut(sweep.space, 1))  # type: ignore[arg-type]
    suggestions._worker = worker  # type: ignore[assignment]
    suggestions.stir = lambda: None  # type: ignore[method-assign]
    return suggestions


def test_what_new_suggestions_replace_is_not_pending() -> None:
    async def questions() -> list[list[str]]:
        worker = Slow()
        suggestions = suggestions_of(worker)
        view = View(at_work=4, setting=5, pending=["[0.3]"])
        suggestions._ready = await suggestions._suggest(view, 2, 5)
        await suggestions._suggest(view, 2, 5)
        suggestions._known += 1
        await suggestions._suggest(view, 2, 5)
        return worker.pending

    first, same_results, one_more_result = asyncio.run(questions())
    assert len(first) == 1
    assert len(same_results) == 3, "what is ready stays, beside what is made now"
    assert one_more_result == first


def test_a_hand_out_during_a_question_is_known_to_the_next() -> None:
    async def questions() -> tuple[bool, list[str]]:
        worker = Slow()
        suggestions = suggestions_of(worker)
        view = View(at_work=4, setting=5, pending=["[0.3]"])
        suggestions._ready = await suggestions._suggest(view, 2, 5)
        suggestions._known += 1
        worker.go_on.clear()
        question = asyncio.create_task(suggestions._suggest(view, 2, 5))
        await asyncio.sleep(0)
        demand = Demand(count=1, setting=5, others_at_work=4, results=1)
        (taken,) = await suggestions.take(demand, asyncio.Event())
        worker.go_on.set()
        made = await question
        suggestions._ready += made
        await suggestions._suggest(view, 2, 5)
        is_made_again = all(ready.knows < suggestions._known for ready in made)
        assert f"[{taken[0]}]" in worker.pending[-1]
        return is_made_again, worker.pending[-1]

    is_made_again, pending = asyncio.run(questions())
    assert is_made_again
    assert len(pending) == 5, "running, handed out, still ready, and the two just made"
