"""Steering a sweep that is there: pause, resume, stop, cancel, retry what failed."""

from __future__ import annotations

from runyard.cli.output import print_json, say
from runyard.client.api import Api
from runyard.client.sweeps import Sweep

STEERING = {
    "pause": "begin no more trials; those that run go on",
    "resume": "begin trials again",
    "stop": "let those that run finish, then end the sweep",
    "cancel": "end the sweep and what runs, at once",
    "retry-failed": "put the trials that failed back into the queue",
}


def steer_sweep(api: Api, before: Sweep, action: str, *, as_json: bool) -> int:
    from runyard.actions.sweep import steer

    after = steer(api, before, action)
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
