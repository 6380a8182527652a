"""What goes wrong between us and a scheduler."""

from __future__ import annotations

from runyard.errors import RunyardError


class SchedulerError(RunyardError):
    """The scheduler refused, or did not answer."""


class SchedulerSilent(SchedulerError):
    """The scheduler did not say whether it took a job."""


class SchedulerMissing(SchedulerError):
    """The scheduler's commands are not here."""


class NoAccounting(Exception):
    """The site keeps no accounting, or does not let us read it; the scheduler's own words."""
