"""When an agent's job ends: as asked for, as the scheduler says, or never. And which job it is."""

from __future__ import annotations

from runyard.grace import usual_grace
from runyard.schedulers.inside import PATIENCE, NotYet, this_job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from runyard.schedulers.inside import JobEnvironment

# A job may be shorter than what was asked for, and is to do something besides saving.
_LARGEST_SHARE = 0.75
# Of the grace, at most this long is left between asking a program to end and killing it.
_LONGEST_LAST_CALL = 10.0
# How often an agent looks whether its job's end has changed: where jobs are pushed out of their
# place, and elsewhere, where only a person changes a time limit. It costs a look at a file.
_LOOK_WHERE_PUSHED_OUT = 5.0
_LOOK_ELSEWHERE = 60.0
_LOOK_IF_UNKNOWN = 15.0
_LOOK_WHILE_ASKING = 0.5
# Slurm's times have a grain of a second.
_GRAIN = 1.5


class JobEnd:
    """The end in epoch seconds, None if there is none; and what is done when before it.

    `job`: where the scheduler may change its mind, and is looked at again; `requested`: the end
    that was asked for, whatever the job's is.
    """

    def __init__(
        self,
        end: float | None,
        now: float,
        grace: float | None = None,
        *,
        job: JobEnvironment | None = None,
        requested: float | None = None,
    ) -> None:
        self._began_at = now
        self._requested_grace = grace
        self._job = job
        self._requested = requested
        self.is_known = False
        """Whether the scheduler has said it since."""
        self.watches_closely = False
        """Whether the job may be pushed out of its place."""
        self.is_pushed_out = False
        """Whether it is: at the end another job gets its place."""
        self._set(end, now)

    def look_again(self, now: float) -> bool:
        """Whether the end has changed since. It returns at once."""
        if self._job is None:
            return False
        try:
            times = self._job.look()
        except NotYet:
            return False
        if times is None:
            self._job = None
            return False
        self.is_known = True
        end = soonest(times.end, self._requested)
        was_pushed_out, self.is_pushed_out = self.is_pushed_out, times.is_pushed_out
        is_same = end == self.end or (
            end is not None and self.end is not None and abs(end - self.end) < _GRAIN
        )
        if not is_same:
            self._set(end, now)
        return not is_same or self.is_pushed_out != was_pushed_out

    @property
    def next_look(self) -> float | None:
        """After how many seconds to look again; None: never."""
        if self._job is None:
            return None
        if self._job.is_asking:
            return _LOOK_WHILE_ASKING
        if self.watches_closely:
            return _LOOK_WHERE_PUSHED_OUT
        return _LOOK_ELSEWHERE if self.is_known else _LOOK_IF_UNKNOWN

    def close(self) -> None:
        if self._job is not None:
            self._job.close()
            self._job = None

    def _set(self, end: float | None, now: float) -> None:
        self.end = end
        whole = None if end is None else max(0.0, end - self._began_at)
        grace = self._requested_grace
        self.grace = usual_grace(whole) if grace is None else grace
        if end is not None:
            self.grace = min(self.grace, max(0.0, end - now) * _LARGEST_SHARE)

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


def soonest(*ends: float | None) -> float | None:
    return min((end for end in ends if end is not None), default=None)


def find_end(
    requested: float | None,
    job: JobEnvironment,
    now: float,
    limit: float | None = None,
    age: float = 0.0,
) -> float | None:
    """The soonest of what was asked for and what the scheduler says.

    `limit`: how long the job may take, and `age`: how long its script has run, where the scheduler
    does not say when it ends: its controller may be away, and the job runs all the same.
    """
    of_job = job.find_end(PATIENCE if limit is None else 0.0)
    if of_job is None and limit is not None:
        # A script that is older than its job may be is somebody else's process.
        of_job = now + limit - (age if age < limit else 0.0)
    return soonest(requested, of_job)


def whereabouts(environ: Mapping[str, str]) -> dict[str, str]:
    """`job` (123, or 123_4 in an array) and `node`, as the scheduler calls them; empty outside of a
    job."""
    job = this_job(environ)
    if not job.name:
        return {}
    return {"job": job.name, "node": job.node} if job.node else {"job": job.name}
