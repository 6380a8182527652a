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
