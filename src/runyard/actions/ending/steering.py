"""Steering a sweep that is there: pause, resume, stop, cancel, retry what failed."""

from __future__ import annotations

from collections.abc import Callable

from runyard.client.api import Api
from runyard.client.sweeps import SweepApi
from runyard.shapes.sweeps import Sweep

STEERING: dict[str, tuple[str, Callable[[SweepApi, Sweep], Sweep]]] = {
    "pause": (
        "begin no more trials; those that run go on",
        lambda api, sweep: api.set_state(sweep["key"], "paused"),
    ),
    "resume": (
        "begin trials again",
        lambda api, sweep: api.set_state(sweep["key"], "running"),
    ),
    "stop": (
        "let those that run finish, then end the sweep",
        lambda api, sweep: api.set_state(sweep["key"], "finished"),
    ),
    "cancel": (
        "end the sweep and what runs, at once",
        lambda api, sweep: api.set_state(sweep["key"], "canceled"),
    ),
    "retry-failed": (
        "put the trials that failed back into the queue",
        lambda api, sweep: api.retry(sweep["key"]),
    ),
}


def steer(api: Api, sweep: Sweep, action: str) -> Sweep:
    """The sweep after it; `action` is a key of the table."""
    return STEERING[action][1](api.sweeps, sweep)
