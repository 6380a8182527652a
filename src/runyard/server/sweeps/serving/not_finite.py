"""NaN and infinity in a sweep's metric: noticed as they are logged.

The first such value of a trial is told as an alert of its run. One among many may pass: a batch
that went wrong, a validation set without a sample of some class. A loss that is not finite several
times in a row never comes back, because NaN in the weights stays there, and every further minute is
wasted. So after `IN_A_ROW` such values the trial is ended and counts as failed, unless the sweep
file says `runyard: {nan: keep}`.
"""

from __future__ import annotations

import json
import math
import time
from collections import defaultdict
from collections.abc import Sequence
from sqlite3 import Connection
from typing import Any

from runyard.search.sweep import Sweep
from runyard.server.history.reading.dotted_names import MISSING, look_up
from runyard.server.runs import runs
from runyard.server.runs.alerts import Alert, raise_alert
from runyard.server.store.sql import Row
from runyard.server.store.store import Store
from runyard.server.sweeps.ledger import settling, trials

IN_A_ROW = 3
CAUSE = "nan"
# As some writers of JSON put it, which has no such numbers.
_WORDS = ("NaN", "Infinity", "-Infinity")
_FOR_EVER = 1e12


class NotFiniteWatch:
    """What is known of the trials of one sweep. After a restart of the server it counts anew."""

    def __init__(self, store: Store, sweep: Sweep) -> None:
        self._store = store
        self.sweep = sweep
        self._names = {metric.name: metric.name.split(".") for metric in sweep.metrics}
        # Of a trial and metric: how many values in a row were not finite.
        self._in_a_row: defaultdict[int, dict[str, int]] = defaultdict(dict)
        self._told: set[int] = set()

    async def hear(self, trial: Row, lines: Sequence[str]) -> bool:
        """Rows of a trial came in. Says whether it is to end."""
        number: int = trial["number"]
        seen = self._count(number, lines)
        if seen is None or trial["state"] != "running" or trial["stop"] is not None:
            return False
        counts = self._in_a_row[number]
        ends = self.sweep.options.nan == "stop" and max(counts.values(), default=0) >= IN_A_ROW
        if number in self._told and not ends:
            return False
        self._told.add(number)
        follows = (
            f"after {IN_A_ROW} such values in a row the trial is ended, and counts as failed"
            if self.sweep.options.nan == "stop"
            else "the trial goes on, as the sweep file says (nan: keep)"
        )
        alert = Alert(f"{seen[0]} is {seen[1]}", f"{seen[0]} was logged as {seen[1]}; {follows}",
                      "WARN", _FOR_EVER)  # fmt: skip
        return await self._store.write(_notice, trial["run"], alert, ends)

    def _count(self, number: int, lines: Sequence[str]) -> tuple[str, str] | None:
        """The metric and the value that was not finite, if there was one."""
        seen = None
        counts = self._in_a_row.get(number)
        for line in lines:
            if not any(counts.values() if counts else ()) and not is_suspect(line):
                continue
            row = _parse(line)
            counts = self._in_a_row[number]
            for name, path in self._names.items():
                value = look_up(row, path)
                if value is MISSING or value is None:
                    continue
                if is_finite(value):
                    # What is over the bound is over: the values behind it change nothing.
                    if counts.get(name, 0) < IN_A_ROW:
                        counts[name] = 0
                else:
                    counts[name] = counts.get(name, 0) + 1
                    seen = (name, str(value) if isinstance(value, str) else _word(value))
        return seen


def is_suspect(line: str) -> bool:
    """Whether a row may hold such a value: nearly all rows are told by this alone."""
    return "NaN" in line or "Infinity" in line


def is_finite(value: Any) -> bool:
    if isinstance(value, str):
        return value not in _WORDS
    return not isinstance(value, float) or math.isfinite(value)


def _word(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _parse(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _notice(db: Connection, key: int, alert: Alert, ends: bool) -> bool:
    run = runs.by_key(db, key)
    trial = trials.by_run(db, key)
    if run is None or trial is None:
        return False
    raise_alert(db, key, alert, time.time())
    if not ends or trial["state"] != "running":
        return False
    return settling.ask_to_end(db, run, CAUSE, time.time())
