"""How long before a job's end its programs are told to save, where nobody says anything else.

The script asks Slurm for a signal at that time, and the agent goes by its own clock: both by this.
"""

from __future__ import annotations

_LONGEST = 120.0
_SHARE_OF_TIME = 0.1


def usual_grace(seconds: float | None) -> float:
    """Of a job of so many seconds; None: a job without end."""
    return _LONGEST if seconds is None else min(_LONGEST, seconds * _SHARE_OF_TIME)
