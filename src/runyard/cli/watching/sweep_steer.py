"""What became of a sweep that was steered, in words."""

from __future__ import annotations

from runyard.actions.ending import steering
from runyard.cli.output import print_json, say
from runyard.client.api import Api
from runyard.client.sweeps import Sweep


def steer(api: Api, before: Sweep, action: str, *, as_json: bool) -> int:
    print_steered(before, steering.steer(api, before, action), action, as_json=as_json)
    return 0


def print_steered(before: Sweep, after: Sweep, action: str, *, as_json: bool) -> None:
    if as_json:
        print_json(after)
        return
    counts = after["counts"]
    if action == "retry-failed":
        again = before["counts"]["failed"] - counts["failed"]
        say(f"sweep {after['id']}: {again} failed trials wait to be run again")
    else:
        say(f"sweep {after['id']} is {after['state']}; {counts['running']} trials are running")
    if after["state"] == "running" and not after["agents"]:
        say(f"nobody works on it: `runyard sweep {after['id']}` does")
