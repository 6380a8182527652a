"""When an agent's job ends: as asked for, as the scheduler says, or never. And which job it is."""

from __future__ import annotations

from runyard.grace import usual_grace
from runyard.schedulers.inside import PATIENCE, NotYet, this_job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from runyard.schedulers.inside import JobEnvironment, JobTimes

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
# The scheduler may send its signal up to a minute too early. Within so many times the grace before
# the end, a signal is taken for the one that announces it.
_SIGNAL_COMES_EARLY = 1.5
# Slurm's times have a grain of a second, and its limits are rounded up to whole minutes.
_GRAIN = 1.5
_LIMIT_GRAIN = 60.0


class JobEnd:
    """The end in epoch seconds, None if there is none; and what is done when before it.

    `job`: where the scheduler may change its mind, and is looked at again; `requested`: the end
    that was asked for, whatever the job's is; `limit`: how long the job was to take.
    """

    def __init__(
        self,
        end: float | None,
        now: float,
        grace: float | None = None,
        *,
        job: JobEnvironment | None = None,
        requested: float | None = None,
        limit: float | None = None,
    ) -> None:
        self._began_at = now
        self._limit = limit
        self._requested_grace = grace
        self._job = job
        self._requested = requested
        self.is_known = False
        """Whether the scheduler has said it since."""
        self.has_new_limit = False
        """Whether somebody changed the job's time limit before the last look."""
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
        end = soonest(times.end, self._requested)
        was_pushed_out, self.is_pushed_out = self.is_pushed_out, times.is_pushed_out
        is_same = end == self.end or (
            end is not None and self.end is not None and abs(end - self.end) < _GRAIN
        )
        self.has_new_limit = not is_same and (self.is_known or self._is_new(times))
        self.is_known = True
        if not is_same:
            self._set(end, now)
        return not is_same or self.is_pushed_out != was_pushed_out

    def _is_new(self, times: JobTimes) -> bool:
        """Whether the first answer has another limit than the job was submitted with. Ends do not
        tell it: this node, which counted one, may have a clock that is ahead of the scheduler's."""
        if self._limit is None:
            return self.end is not None and self.end != self._requested
        if times.limit is None:
            return True
        return not -_GRAIN < times.limit - self._limit < _LIMIT_GRAIN

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
        return self.seconds_left(now) <= _SIGNAL_COMES_EARLY * self.grace + self.last_call

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
