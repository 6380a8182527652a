"""A project's runs as GraphQL fields: filtered, ordered, page by page."""

from __future__ import annotations

import asyncio

from runyard.server.history.history import HISTORY, count_rows_of
from runyard.server.listing.filters import BadFilter, read_filter
from runyard.server.listing.orders import BadOrder, read_cursor, read_order, write_cursor
from runyard.server.listing.run_lists import Filter
from runyard.server.runs import states
from runyard.server.sweeps.ledger import trials
from runyard.server.wandb_api.fields import run_fields
from runyard.server.wandb_api.graphql.inputs import Arguments
from runyard.server.wandb_api.graphql.pages import connection, cursor_text, edge, page_size
from runyard.server.wandb_api.graphql.request import Refusal, Request, Source


def in_project(request: Request, project: int | None) -> Source:
    tracker = request.tracker
    # Clients ask for the count and for a page in one request: the filter is read once.
    known: dict[str, Filter] = {}

    async def read(text: str) -> Filter:
        if text not in known:
            try:
                # Beside the event loop: a filter may hold megabytes and dozens of patterns.
                known[text] = Filter(text, await asyncio.to_thread(read_filter, text))
            except BadFilter as error:
                raise Refusal(str(error)) from error
        return known[text]

    async def run_count(arguments: Arguments) -> int:
        chosen = await read(arguments.text("filters") or "")
        return await tracker.read(tracker.run_lists.count, project or 0, chosen)

    async def page(arguments: Arguments) -> Source:
        chosen = await read(arguments.text("filters") or "")
        try:
            order = read_order(arguments.text("order"))
            after = read_cursor(cursor_text(arguments))
        except BadOrder as error:
            raise Refusal(str(error)) from error
        listed = await tracker.read(
            tracker.run_lists.read_page, project or 0, chosen, order, after, page_size(arguments)
        )
        shown = [row["key"] for row, _ in listed.runs]
        counts = await tracker.read(count_rows_of, shown, HISTORY)
        # A scheduler takes an end for final, and would never hear of what becomes of them.
        going_on = await tracker.read(trials.open_elsewhere, shown)
        edges = [
            edge(
                write_cursor(place),
                {
                    **run_fields.run_fields(request, row),
                    "historyLineCount": counts[row["key"]],
                    "state": _state(row["state"], going_on.get(row["key"])),
                },
            )
            for row, place in listed.runs
        ]

        async def total(_arguments: Arguments) -> int:
            return await run_count(arguments)

        return connection(edges, more=listed.more, total=total)

    return {"runs": page, "runCount": run_count}


def _state(state: str, trial: str | None) -> str:
    """A run's state; where its trial goes on, never one that it ends in."""
    if trial is None or state in states.ALIVE:
        return state
    return "running" if trial == "running" and state != "pending" else "pending"
