"""The default time between the signal to save and the end of the job.

The script asks Slurm for a signal at that time, and the agent uses its own clock. Both use this
module, so that they agree.
"""

from __future__ import annotations

_LONGEST = 120.0
_SHARE_OF_TIME = 0.1


def usual_grace(seconds: float | None) -> float:
    """For a job of so many seconds; None: a job without a time limit."""
    return _LONGEST if seconds is None else min(_LONGEST, seconds * _SHARE_OF_TIME)
