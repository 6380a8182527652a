"""Why attempts did not get through, counted by cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from runyard.client.sweeps import Effort, Trial

# Ends that are none of anybody's trouble.
_AS_IT_SHOULD = ("finished", "stopped", "canceled", "paused", "go-on", "deleted")
# What is cut off goes on, from its checkpoint where it has one.
_CUT_OFF = ("preempted", "time", "node", "cut", "crowded")


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
    named = {one["number"]: one for one in trials}
    found: dict[str, list[Effort]] = {}
    for one in attempts:
        if one["cause"] is not None and one["cause"] not in _AS_IT_SHOULD:
            found.setdefault(one["cause"], []).append(one)
    tried = {one["trial"] for one in attempts}
    for trial in trials:
        cause = trial["cause"] or "program"
        if trial["state"] == "failed" and trial["number"] not in tried:
            found.setdefault(cause, []).append(_as_attempt(trial, cause))
    told = [_failure(cause, ended, named, causes) for cause, ended in found.items()]
    return sorted(told, key=lambda one: (-one.failed, -one.attempts, one.cause))


def _failure(
    cause: str,
    ended: Sequence[Effort],
    trials: Mapping[int, Trial],
    causes: Mapping[str, str],
) -> Failure:
    numbers = list(dict.fromkeys(one["trial"] for one in ended))
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
        seconds=sum(max(0.0, (one["ended_at"] or 0.0) - one["started_at"]) for one in ended),
        core_seconds=sum(float((one["usage"] or {}).get("cpu_seconds", 0.0)) for one in ended),
        example=example,
        goes_on=cause in _CUT_OFF,
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
