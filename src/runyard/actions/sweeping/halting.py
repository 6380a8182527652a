"""When a list ends before its end: GNU parallel's `--halt`, as far as failures go."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from runyard.actions.events import Notice, Notify
from runyard.client.api import Api
from runyard.shapes.sweeps import Sweep


@dataclass(frozen=True)
class HaltRule:
    """`now` ends what runs as well; otherwise that may finish."""

    now: bool
    most: int
    is_percent: bool


def read_halt_rule(text: str) -> HaltRule | None:
    """never, 3, 10%, soon,fail=3 or now,fail=1; ValueError otherwise."""
    if text == "never":
        return None
    words = re.fullmatch(r"(?:(now|soon),fail=)?([1-9]\d*)(%?)", text)
    if words is None:
        raise ValueError(f"{text!r} is not never, N, N%, soon,fail=N or now,fail=N")
    return HaltRule(words[1] == "now", int(words[2]), bool(words[3]))


@dataclass
class Halt:
    """Ends the sweep once too many have failed."""

    rule: HaltRule
    notify: Notify
    is_done: bool = False

    def look(self, api: Api, sweep: Sweep, *, is_last: bool) -> None:
        most = self.rule.most
        if self.rule.is_percent:
            most = max(1, math.ceil(most / 100 * (sweep["expected"] or 0)))
        failed = sweep["counts"]["failed"]
        if self.is_done or is_last or failed < most or sweep["state"] != "running":
            return
        self.is_done = True
        api.sweeps.set_state(sweep["key"], "canceled" if self.rule.now else "finished")
        what = "what runs is ended" if self.rule.now else "what runs may finish"
        again = f"`runyard sweep --resume {sweep['id']}` goes on"
        self.notify(Notice(f"{failed} failed: no more begin, and {what}; {again}"))

    def close(self) -> None:
        pass
