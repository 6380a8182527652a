"""Before a launch: `runyard rehearse` runs the program for a rung of its ladder."""

from __future__ import annotations

import os

VARIABLE = "RUNYARD_REHEARSAL"


def rehearsal() -> str | None:
    """Which rung this is: `one sample`, `one batch`, one that runyard.yaml names, or `settings`,
    where settings of a sweep are tried for a few steps; None in a run that counts.

        if train.rehearsal() == "one sample":
            data = data[:1]
    """
    return os.environ.get(VARIABLE) or None
