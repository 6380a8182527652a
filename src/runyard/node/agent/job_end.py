"""When an agent's job ends: as asked for, as the scheduler says, or never. And which job it is."""

from __future__ import annotations

from runyard.grace import usual_grace
from runyard.schedulers.inside import this_job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# A job may be shorter than what was asked for, and is to do something besides saving.
_LARGEST_SHARE = 0.75
# Of the grace, at most this long is left between asking a program to end and killing it.
_LONGEST_LAST_CALL = 10.0


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
    age: float = 0.0,
) -> float | None:
    """The soonest of what was asked for and what the scheduler says.

    `limit`: how long the job may take, and `age`: how long its script has run, where the scheduler
    does not say when it ends: its controller may be away, and the job runs all the same.
    """
    of_job = this_job(environ).find_end()
    if of_job is None and limit is not None:
        # A script that is older than its job may be is somebody else's process.
        of_job = now + limit - (age if age < limit else 0.0)
    requested = None if seconds is None else now + seconds
    return min((end for end in (requested, of_job) if end is not None), default=None)


def whereabouts(environ: Mapping[str, str]) -> dict[str, str]:
    """`job` (123, or 123_4 in an array) and `node`, as the scheduler calls them; empty outside of a
    job."""
    job = this_job(environ)
    if not job.name:
        return {}
    return {"job": job.name, "node": job.node} if job.node else {"job": job.name}
