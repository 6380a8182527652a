"""A sweep's chain in words: which link is at work, and what is still to come."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from runyard.actions.watching.chains import ChainState
from runyard.cli.output import duration
from runyard.cli.watching.job_view import Line


def chain_json(state: ChainState | None) -> dict[str, Any] | None:
    return None if state is None else asdict(state)


def chain_lines(state: ChainState | None, *, is_open: bool) -> list[Line]:
    """One line, while there is work."""
    if state is None or not is_open:
        return []
    now = f"link {state.over + 1} of {state.links} "
    now += "is at work" if state.at_work else "is next"
    later = state.to_come - (0 if state.at_work else 1)
    side = f", {state.lanes} agents side by side" if state.lanes > 1 else ""
    if state.over >= state.links:
        mend = "`runyard agents add` sends more"
        return [(f"  chain: all {state.links} links are over, and there is work left; {mend}",
                 "yellow")]  # fmt: skip
    time = ""
    if state.seconds_each and later > 0:
        time = f", up to {duration(state.seconds_each * later)}"
    return [(f"  chain: {now}{side}; {max(0, later)} more to come{time}", None)]
