"""How an attempt's end is told: what it left behind goes first, then the server hears of it."""

from __future__ import annotations

import signal
import time

from runyard.node.system.processes import CLIENT_SECONDS
from runyard.schedulers.inside import this_job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from runyard.node.agent.work import Slot, Work
    from runyard.node.attempt.trial_attempt import Attempt
    from runyard.node.link.channel import Answer

    Tell = Callable[[Callable[[Answer], None]], None]

_REST_GRACE_SECONDS = 5.0
_TERM_SECONDS = 1.0


class Ending:
    """Ends of attempts. `fail`: the server does not want to hear of them, and why."""

    def __init__(self, work: Work, fail: Callable[[str], None]) -> None:
        self._work = work
        self._fail = fail

    def has_ended(self, slot: Slot, attempt: Attempt, tell: Tell) -> None:
        """A slot's program has ended. `tell` sends that, and asks for what the slot does next."""
        if _may_be_the_jobs_end(attempt):
            self._work.loop.after(_TERM_SECONDS, lambda: self._settle(slot, attempt, tell))
        else:
            self._settle(slot, attempt, tell)

    def _settle(self, slot: Slot, attempt: Attempt, tell: Tell) -> None:
        if _may_be_the_jobs_end(attempt) and self._work.is_draining:
            attempt.was_ended("preempted")
        if attempt.exit_code:
            # It may go on elsewhere at once: what it logged is to be there before.
            self._clear_up(attempt, lambda: self._tell_end(slot, attempt, tell))
        else:
            self._tell_end(slot, attempt, tell)
            self._clear_up(attempt, lambda: None)

    def _tell_end(self, slot: Slot, attempt: Attempt, tell: Tell) -> None:
        slot.attempt = None
        if attempt.exit_code:
            attempt.hurry(slot.channel)  # Its last words say why it failed: first these.
        tell(lambda answer: self._is_told(attempt, answer))

    def _is_told(self, attempt: Attempt, answer: Answer) -> None:
        if answer.status in (401, 403):
            self._fail(answer.error)  # What we know is kept, for whoever may tell it.
            return
        attempt.is_told("end")
        content = answer.json() if answer.is_good else {}
        trial = content.get("trial")
        if self._work.job_log is not None:
            self._work.job_log.add(attempt, trial)
        if trial is not None and trial["state"] == "failed":
            self._work.failures.append(attempt.exit_code or 1)
        self._work.report(end_line(attempt, trial))

    def _clear_up(self, attempt: Attempt, then: Callable[[], None]) -> None:
        """End what a program left running behind it, then call; the keeper forgets it only then."""
        work = self._work
        work.unclear.add(attempt)
        began = time.monotonic()

        def look() -> None:
            waited = time.monotonic() - began
            late = waited >= _REST_GRACE_SECONDS
            # Somebody else has a trial that is lost: its rows are not ours to send.
            is_over = waited >= CLIENT_SECONDS or work.gave_up or attempt.ending == "node"
            hurry = signal.SIGKILL if is_over else 0
            if attempt.end_rest(signal.SIGKILL if late else signal.SIGTERM, hurry):
                work.loop.after(0.1 if late else 0.05, look)
            else:
                work.unclear.discard(attempt)
                work.keeper.ended(attempt.token)
                then()

        look()


def _may_be_the_jobs_end(attempt: Attempt) -> bool:
    """Whether it died of what a scheduler sends to every process of a job that is cancelled or
    pushed out: to us as well, but perhaps a moment later."""
    by_term = attempt.exit_code in (-signal.SIGTERM, 128 + signal.SIGTERM)
    return by_term and attempt.ending is None and this_job().is_job


def end_line(attempt: Attempt, trial: dict[str, Any] | None) -> str:
    """How an attempt ended, in one line."""
    code = attempt.exit_code or 0
    how = f"exit code {code}" if code >= 0 else f"signal {-code}"
    state = trial["state"] if trial else ("ended" if code == 0 else "failed")
    cause = (trial.get("cause") if trial else None) or attempt.cause
    if trial and trial["state"] in ("waiting", "paused"):
        state = f"goes back ({cause or how})"
    elif code:
        state = f"{state} ({how if cause in (None, 'program', 'signal') else cause})"
    value = trial.get("value") if trial else None
    shown = f": {value:.6g}" if isinstance(value, int | float) else ""
    return f"{attempt.name} {state} after {attempt.seconds:.1f} s{shown}"
