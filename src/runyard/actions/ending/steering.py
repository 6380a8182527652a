"""Steering a sweep that is there: pause, resume, stop, cancel, retry what failed."""

from __future__ import annotations

from runyard.client.api import Api
from runyard.client.sweeps import SweepState
from runyard.shapes.sweeps import Sweep

# What each does, and the state that the sweep is given.
STEERING: dict[str, tuple[str, SweepState | None]] = {
    "pause": ("begin no more trials; those that run go on", "paused"),
    "resume": ("begin trials again", "running"),
    "stop": ("let those that run finish, then end the sweep", "finished"),
    "cancel": ("end the sweep and what runs, at once", "canceled"),
    "retry-failed": ("put the trials that failed back into the queue", None),
}


def steer(api: Api, sweep: Sweep, action: str) -> Sweep:
    """The sweep after it; `action` is a key of the table."""
    state = STEERING[action][1]
    key = sweep["key"]
    return api.sweeps.retry(key) if state is None else api.sweeps.set_state(key, state)
