"""How much of the GPUs each of an agent's programs has, for the sweep's budget."""

from __future__ import annotations

import os
import time

from runyard.node.devices.gpus import find_gpus, read_names
from runyard.schedulers.inside import this_job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from runyard.node.attempt.trial_attempt import Attempt


class GpuTime:
    """Call `look` before what runs changes, and from time to time.

    A program's share of a GPU is one over the number of programs that have it at that time.
    """

    def __init__(self, launcher: Sequence[str]) -> None:
        job = this_job()
        # Of programs to which no GPUs were dealt out: those that the shell or the job names.
        named = find_gpus("auto", os.environ, list).names
        self._named = named or read_names(job.gpus)
        # A program with ranks on other nodes has as many there.
        has_ranks = any("ranks.leader" in word for word in launcher)
        self._nodes = job.nodes if has_ranks else 1
        self._looked_at = time.monotonic()
        self._totals: dict[str, tuple[float, float]] = {}

    def look(self, held: Sequence[Attempt]) -> None:
        """Put each program's mean share so far into its usage."""
        now = time.monotonic()
        passed, self._looked_at = now - self._looked_at, now
        cards = {attempt.token: self._cards(attempt) for attempt in held}
        crowd: dict[str, int] = {}
        for names in cards.values():
            for name in names:
                crowd[name] = crowd.get(name, 0) + 1
        known = {}
        for attempt in held:
            share = self._nodes * sum(1 / crowd[name] for name in cards[attempt.token])
            gpu_seconds, seconds = self._totals.get(attempt.token, (0.0, 0.0))
            known[attempt.token] = (gpu_seconds + share * passed, seconds + passed)
            gpu_seconds, seconds = known[attempt.token]
            mean = gpu_seconds / seconds if seconds else share
            if mean:
                attempt.usage["gpu_share"] = round(mean, 4)
        self._totals = known

    def _cards(self, attempt: Attempt) -> tuple[str, ...]:
        """Dealt out by us, named by the job, or else those on which it was seen."""
        if attempt.gpus or self._named:
            return attempt.gpus or self._named
        seen = str(attempt.usage.get("gpu") or "")
        return tuple(dict.fromkeys(name for name in seen.split(",") if name))
