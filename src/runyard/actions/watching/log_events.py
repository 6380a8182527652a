"""What is asked of logs, and the pieces in which they come."""

from __future__ import annotations

from dataclasses import dataclass

from runyard.actions.events import Event


@dataclass(frozen=True)
class LogsRequest:
    """`what`: a run, a sweep or a job in the user's words; None: the newest run.

    `lines`: only the last so many, before it goes on. `trials`: of a job, what its trials printed
    in place of its log.
    """

    what: str | None = None
    follow: bool = False
    lines: int | None = None
    trials: bool = False


@dataclass(frozen=True)
class LogText(Event):
    """A piece of what one program printed, wherever it was cut; `is_own`: by the caller's own."""

    text: str
    is_own: bool


@dataclass(frozen=True)
class LogLines(Event):
    """Whole lines of one source: a trial or a task."""

    source: str
    lines: list[str]
    is_own: bool
