"""When the job ends in which an agent works: asked for, Slurm's, or never."""

from __future__ import annotations

import contextlib
import time

from runyard.grace import usual_grace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# A job may be shorter than what was asked for, and is to do something besides saving.
_LARGEST_SHARE = 0.75
# Of the grace, at most this long is left between asking a program to end and killing it.
_LONGEST_LAST_CALL = 10.0
_SLURM_SECONDS = 5.0


class JobEnd:
    """The end in epoch seconds, None if there is none; and what is done when before it."""

    def __init__(self, end: float | None, now: float, grace: float | None = None) -> None:
        self.end = end
        whole = None if end is None else max(0.0, end - now)
        self.grace = usual_grace(whole) if grace is None else grace
        if whole is not None:
            self.grace = min(self.grace, whole * _LARGEST_SHARE)

    @property
    def last_call(self) -> float:
        """Seconds before the end at which programs that are still there are asked to end."""
        return min(_LONGEST_LAST_CALL, self.grace / 4)

    @property
    def deadline(self) -> float | None:
        """By when a program is to be gone."""
        return None if self.end is None else self.end - self.last_call

    def seconds_left(self, now: float) -> float:
        return float("inf") if self.end is None else self.end - now

    def is_near(self, now: float) -> bool:
        """Whether who tells us to leave now tells us of this very end."""
        return self.seconds_left(now) <= 1.5 * self.grace + self.last_call

    def useful_seconds(self, now: float) -> float | None:
        """For how long a program that begins now may work before it is told to save; None: without
        end."""
        return None if self.end is None else self.end - now - self.grace


def find_end(
    seconds: float | None,
    environ: Mapping[str, str],
    now: float,
    limit: float | None = None,
) -> float | None:
    """The soonest of what was asked for and what Slurm says.

    `limit`: how long the job may take, where Slurm does not say when it ends: its controller may be
    away, and the job runs all the same.
    """
    asked = None if seconds is None else now + seconds
    told = _slurm_end(environ)
    if told is None and limit is not None:
        told = now + limit
    return min((end for end in (asked, told) if end is not None), default=None)


def _slurm_end(environ: Mapping[str, str]) -> float | None:
    told = environ.get("SLURM_JOB_END_TIME")
    if told is not None:
        with contextlib.suppress(ValueError):
            # Zero is how a job without a limit may be written.
            return float(told) or None
    job = environ.get("SLURM_JOB_ID")
    return None if job is None else _ask_slurm(job)


def _ask_slurm(job: str) -> float | None:
    """Older releases do not set it. An agent that cannot learn it works without an end."""
    import subprocess  # Only here: nothing else of the agent needs it.

    with contextlib.suppress(OSError, subprocess.SubprocessError, ValueError):
        said = subprocess.run(
            ["squeue", "--noheader", "--jobs", job, "--format", "%e"],
            capture_output=True, text=True, timeout=_SLURM_SECONDS, check=True,
        ).stdout.strip()  # fmt: skip
        return time.mktime(time.strptime(said, "%Y-%m-%dT%H:%M:%S"))
    return None
