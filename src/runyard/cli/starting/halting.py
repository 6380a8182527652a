"""When a list ends before its end: GNU parallel's `--halt`, as far as failures go."""

from __future__ import annotations

import argparse
import math
import re
from dataclasses import dataclass, field

from runyard.cli.output import say
from runyard.client.api import Api
from runyard.client.sweeps import Sweep

_WORDS = re.compile(r"(?:(now|soon),fail=)?([1-9]\d*)(%?)")


@dataclass
class Halt:
    """`now` ends what runs as well, `soon` lets it finish."""

    now: bool
    most: int
    is_percent: bool
    is_done: bool = field(default=False)

    def look(self, api: Api, sweep: Sweep, *, is_last: bool) -> None:
        most = self.most
        if self.is_percent:
            most = max(1, math.ceil(most / 100 * (sweep["expected"] or 0)))
        failed = sweep["counts"]["failed"]
        if self.is_done or is_last or failed < most or sweep["state"] != "running":
            return
        self.is_done = True
        api.sweeps.set_state(sweep["key"], "canceled" if self.now else "finished")
        what = "what runs is ended" if self.now else "what runs may finish"
        say(f"{failed} failed: no more begin, and {what}; "
            f"`runyard sweep --resume {sweep['id']}` goes on")  # fmt: skip

    def close(self) -> None:
        pass


def halt(text: str) -> Halt | None:
    """For `type=`: never, 3, 10%, soon,fail=3 or now,fail=1."""
    if text == "never":
        return None
    found = _WORDS.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not never, N, N%, soon,fail=N or now,fail=N")
    return Halt(found[1] == "now", int(found[2]), bool(found[3]))
