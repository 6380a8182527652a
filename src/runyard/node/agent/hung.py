"""Programs whose run is over and that do not end: a thread that nobody ends, a worker that waits.

The wandb client has closed the run, and the server tells the agent. Who still computes, prints or
writes after that is left alone. Who does nothing is named in the log, and ended a while later; the
attempt then counts as what the run said.
"""

from __future__ import annotations

import contextlib
import os
import time

from runyard.node.system import processes
from runyard.node.system.process_trees import TICKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from runyard.node.attempt.trial_attempt import Attempt

# For so long it does nothing before it is told of, and once more before it is ended.
_QUIET_SECONDS = 120.0
# Idle threads wake up now and then: less than this share of one CPU is nothing.
_IDLE_SHARE = 0.01


class Activity:
    """What a program has done by now, as far as it can be seen from outside."""

    def __init__(self, cpu_seconds: float, written: int, lines: int) -> None:
        self.at = time.monotonic()
        self.cpu_seconds = cpu_seconds
        self.written = written
        self.lines = lines

    def is_idle_since(self, before: Activity) -> bool:
        used = self.cpu_seconds - before.cpu_seconds
        is_quiet = (self.written, self.lines) == (before.written, before.lines)
        # At least a tick: that is how finely the kernel counts.
        return is_quiet and used <= max(2 / TICKS, (self.at - before.at) * _IDLE_SHARE)


class HungWatch:
    """`look` with every answer of the server that says which runs are over."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._quiet = float(os.environ.get("RUNYARD_HUNG_SECONDS") or _QUIET_SECONDS)
        # Since it was last seen to do something.
        self._seen: dict[Attempt, Activity] = {}
        self._named: set[Attempt] = set()

    def look(
        self, over: Sequence[Mapping[str, Any]], held: Mapping[tuple[int, int], Attempt]
    ) -> None:
        """`over`: attempts whose run is over, with its exit code; `held`: what the agent has."""
        codes = {
            held[record["trial"], record["attempt"]]: int(record["exit_code"] or 0)
            for record in over
            if (record["trial"], record["attempt"]) in held
        }
        self._seen = {attempt: seen for attempt, seen in self._seen.items() if attempt in codes}
        self._named &= codes.keys()
        for attempt, code in codes.items():
            if attempt.runs and attempt.ending is None:
                self._judge(attempt, code)

    def _judge(self, attempt: Attempt, code: int) -> None:
        now = activity(attempt)
        before = self._seen.get(attempt)
        if now is None or before is None or not now.is_idle_since(before):
            self._named.discard(attempt)
            if now is not None:
                self._seen[attempt] = now
            return
        idle = now.at - before.at
        how = "finished" if code == 0 else f"failed with exit code {code}"
        if idle >= 2 * self._quiet:
            self._report(f"{attempt.name} is ended: its run has {how}, and it hangs")
            attempt.end_as(code)
        elif idle >= self._quiet and attempt not in self._named:
            self._named.add(attempt)
            self._report(
                f"{attempt.name} hangs: its run has {how}, and it has done nothing for "
                f"{idle:.0f} s; it is ended in {self._quiet:.0f} s if that stays so"
            )


def activity(attempt: Attempt) -> Activity | None:
    """None where it cannot be told: ranks may compute on other nodes while this one waits."""
    if attempt.pid is None or processes.has_ranks(attempt.token):
        return None
    cpu_seconds, written = 0.0, 0
    own = [
        pid
        for pid in processes.members([attempt.pid], [attempt.token])
        # It tells the server every now and then that it is there.
        if not processes.is_client(pid)
    ]
    for pid in own:
        with contextlib.suppress(OSError, ValueError, IndexError):
            with open(f"/proc/{pid}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
            with open(f"/proc/{pid}/io") as file:
                counts = dict(line.split(": ") for line in file.read().splitlines())
            cpu_seconds += (int(fields[11]) + int(fields[12])) / TICKS
            written += int(counts["wchar"])
    return Activity(cpu_seconds, written, attempt.lines) if own else None
