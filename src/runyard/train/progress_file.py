"""How far training is, for whoever started the program: a file with a line now and then.

`RUNYARD_PROGRESS_FILE` names it. A line is `STEP TOTAL EPOCH_SECONDS SECONDS_LEFT LEAST MOST`, so a
program in any language can write it; the times may be left out. `runyard gauge` reads it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

VARIABLE = "RUNYARD_PROGRESS_FILE"
_DENSE_LINES = 32
_LEAST_SECONDS_BETWEEN_LINES = 0.25


class ProgressFile:
    """The lines of one loop; without the variable it does nothing."""

    def __init__(self) -> None:
        self._path = os.environ.get(VARIABLE)
        self._lines = 0
        self._written = 0.0

    def is_due(self, step: int, total: int) -> bool:
        if self._path is None:
            return False
        waited = time.time() - self._written >= _LEAST_SECONDS_BETWEEN_LINES
        return waited or self._lines < _DENSE_LINES or step == total

    def note(self, step: int, total: int, left: Sequence[float] = ()) -> None:
        """`left`: the seconds that are left as they are expected, at least and at most."""
        if self._path is None:
            return
        now = time.time()
        self._lines += 1
        self._written = now
        known = "".join(f" {seconds:.3f}" for seconds in left)
        try:
            with open(self._path, "a") as file:
                file.write(f"{step} {total} {now:.3f}{known}\n")
        except OSError:
            self._path = None  # Nobody looks any more; training goes on.
