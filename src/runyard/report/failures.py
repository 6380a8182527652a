"""Why attempts did not get through, counted by cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from runyard.end_causes import AS_PLANNED, GOES_ON
from runyard.shapes.sweeps import Effort, Trial

# Ends that are no trouble; a deleted run's trial says so.
_AS_IT_SHOULD = (*AS_PLANNED, "deleted")


@dataclass(frozen=True)
class Failure:
    """A cause: how many attempts it ended, of how many trials, and how many of those are lost."""

    cause: str
    words: str
    attempts: int
    trials: int
    failed: int
    """Trials that have failed for good."""
    seconds: float
    core_seconds: float
    example: str
    goes_on: bool

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def failures(
    trials: Sequence[Trial], attempts: Sequence[Effort], causes: Mapping[str, str]
) -> list[Failure]:
    """The most frequent first. Trials of W&B's own agents have no attempts, and count as one."""
    named = {trial["number"]: trial for trial in trials}
    by_cause: dict[str, list[Effort]] = {}
    for attempt in attempts:
        if attempt["cause"] is not None and attempt["cause"] not in _AS_IT_SHOULD:
            by_cause.setdefault(attempt["cause"], []).append(attempt)
    tried = {attempt["trial"] for attempt in attempts}
    for trial in trials:
        cause = trial["cause"] or "program"
        if trial["state"] == "failed" and trial["number"] not in tried:
            by_cause.setdefault(cause, []).append(_as_attempt(trial, cause))
    counted = [_failure(cause, ended, named, causes) for cause, ended in by_cause.items()]
    return sorted(counted, key=lambda failure: (-failure.failed, -failure.attempts, failure.cause))


def _failure(
    cause: str,
    ended: Sequence[Effort],
    trials: Mapping[int, Trial],
    causes: Mapping[str, str],
) -> Failure:
    numbers = list(dict.fromkeys(attempt["trial"] for attempt in ended))
    last = trials.get(ended[-1]["trial"])
    code = ended[-1]["exit_code"]
    example = (last["id"] if last else "") + (f" (exit code {code})" if code else "")
    return Failure(
        cause=cause,
        words=causes.get(cause, cause),
        attempts=len(ended),
        trials=len(numbers),
        failed=sum(
            number in trials
            and trials[number]["state"] == "failed"
            and trials[number]["cause"] == cause
            for number in numbers
        ),
        seconds=sum(
            max(0.0, (attempt["ended_at"] or 0.0) - attempt["started_at"]) for attempt in ended
        ),
        core_seconds=sum(
            float((attempt["usage"] or {}).get("cpu_seconds", 0.0)) for attempt in ended
        ),
        example=example,
        goes_on=cause in GOES_ON,
    )


def _as_attempt(trial: Trial, cause: str) -> Effort:
    began = trial["started_at"] or trial["created_at"]
    return Effort(
        trial=trial["number"],
        number=1,
        agent=trial["agent"],
        host=trial["host"] or "",
        started_at=began,
        ended_at=trial["ended_at"] or began,
        exit_code=trial["exit_code"],
        cause=cause,
        usage=None,
    )
