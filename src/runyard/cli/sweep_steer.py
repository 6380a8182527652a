"""Steering a sweep that is there: pause, resume, stop, cancel, retry what failed."""

from __future__ import annotations

from collections.abc import Callable

from runyard.cli.output import print_json, say
from runyard.client.api import Api
from runyard.client.sweeps import Sweep, SweepApi

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


def steer(api: Api, before: Sweep, action: str, *, as_json: bool) -> int:
    after = STEERING[action][1](api.sweeps, before)
    if as_json:
        print_json(after)
        return 0
    counts = after["counts"]
    if action == "retry-failed":
        again = before["counts"]["failed"] - counts["failed"]
        say(f"sweep {after['id']}: {again} failed trials wait to be run again")
    else:
        say(f"sweep {after['id']} is {after['state']}; {counts['running']} trials are running")
    if after["state"] == "running" and not after["agents"]:
        say(f"nobody works on it: `runyard sweep {after['id']}` does")
    return 0
