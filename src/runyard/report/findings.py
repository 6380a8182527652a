"""What a report is made of: the jobs, attempts and trials behind it, counted and judged.

Everything here is data: who writes it down (`sections`, `plots`, and the forms) adds nothing to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from runyard.report.advice import DEFAULT, Change, Margins, alike, changes, wishes
from runyard.report.efficiency import Use, is_in, use_of, use_outside
from runyard.report.failures import Failure, failures
from runyard.report.repeats import Repeats
from runyard.report.settings import Aim, Setting
from runyard.shapes.jobs import Job
from runyard.shapes.sweeps import Effort, Importance, Sweep, Trial, TrialColumns, Work


@dataclass(frozen=True)
class Group:
    """Jobs that asked alike, and what the next one should ask for. Without jobs: what ran outside
    of any job, where nothing was asked."""

    jobs: Sequence[Job]
    uses: Sequence[Use]
    changes: Sequence[Change]

    @property
    def asked(self) -> Mapping[str, Any]:
        return self.jobs[0]["asked"] if self.jobs else {}

    def total(self, name: str) -> float | None:
        """A figure of all its jobs; None where nobody knows any."""
        return add([getattr(use, name) for use in self.uses])

    def most(self, name: str) -> float | None:
        values = [getattr(use, name) for use in self.uses]
        return max((value for value in values if value is not None), default=None)

    def to_json(self) -> dict[str, Any]:
        sums = (
            "tasks", "seconds", "cpu_held", "cpu_used", "cpu_idle", "cpu_lost", "gpu_held",
            "gpu_used", "gpu_idle", "gpu_lost",
        )  # fmt: skip
        largest = (
            "longest", "limit", "memory_asked", "memory_peak", "vram_total", "vram_peak", "at_once",
        )  # fmt: skip
        return {
            "jobs": [job["job_id"] for job in self.jobs],
            "asked": dict(self.asked),
            "source": sorted({use.source for use in self.uses}),
            **{name: self.total(name) for name in sums},
            **{name: self.most(name) for name in largest},
            "changes": [change.to_json() for change in self.changes],
        }


@dataclass(frozen=True)
class Outcome:
    """What a sweep found."""

    sweep: Sweep
    trials: Sequence[Trial]
    aims: Sequence[Aim] = ()
    settings: Sequence[Setting] = ()
    """The best first; with several aims, the Pareto front."""
    columns: TrialColumns | None = None
    importance: Importance | None = None
    repeats: Sequence[Repeats] = ()
    """Where no metric was named: every number that the trials have in common."""

    @property
    def is_front(self) -> bool:
        return len(self.aims) > 1

    @property
    def counts(self) -> dict[str, int]:
        return {state: count for state, count in self.sweep["counts"].items() if count}

    def to_json(self) -> dict[str, Any]:
        return {
            "sweep": self.sweep["id"],
            "name": self.sweep["name"],
            "project": f"{self.sweep['entity']}/{self.sweep['project']}",
            "state": self.sweep["state"],
            "counts": self.counts,
            "metrics": [
                {"name": aim.name, "goal": "maximize" if aim.maximize else "minimize"}
                for aim in self.aims
            ],
            "best": [_plain(setting.to_json(self.aims)) for setting in self.settings],
            "is_front": self.is_front,
            "importance": self.importance,
            "convergence": self.columns["convergence"] if self.columns else [],
            "over_seeds": [repeat.to_json() for repeat in self.repeats],
        }


def _plain(setting: dict[str, Any]) -> dict[str, Any]:
    return {**setting, "trials": [trial["id"] for trial in setting["trials"]]}


@dataclass(frozen=True)
class Report:
    """All of it, of a job, a sweep or a project."""

    kind: str
    title: str
    about: Sequence[str]
    """Short lines that say what this is a report of."""
    groups: Sequence[Group] = ()
    failures: Sequence[Failure] = ()
    outcomes: Sequence[Outcome] = ()
    """One of a sweep; those of a project, the newest first."""
    tries: Sequence[Mapping[str, Any]] = ()
    """A row a trial, for tables of numbers."""
    is_open: bool = False
    notes: Sequence[str] = field(default_factory=tuple)
    made_at: float = 0.0
    alone: Mapping[str, Any] | None = None
    """A project's runs that are no trial: how many, in which states, how long."""

    @property
    def outcome(self) -> Outcome | None:
        return self.outcomes[0] if self.kind == "sweep" and self.outcomes else None

    @property
    def counted(self) -> list[Group]:
        """Those in jobs, which cost hours; where there are none, all."""
        return [group for group in self.groups if group.jobs] or list(self.groups)

    def total(self, name: str) -> float | None:
        return add([group.total(name) for group in self.counted])

    def wasted(self, kind: str) -> float | None:
        """Seconds of `cpu` or `gpu` that were idle, or went into what failed."""
        idle = self.total(f"{kind}_idle")
        return None if idle is None else idle + (self.total(f"{kind}_lost") or 0.0)

    def to_json(self) -> dict[str, Any]:
        hours = {
            f"{kind}_{what}": _hours(self.total(f"{kind}_{what}"))
            for kind in ("cpu", "gpu")
            for what in ("held", "used", "idle", "lost")
        }
        return {
            "kind": self.kind,
            "title": self.title,
            "about": list(self.about),
            "is_open": self.is_open,
            "made_at": self.made_at,
            "notes": list(self.notes),
            "hours": {
                **hours,
                "cpu_wasted": _hours(self.wasted("cpu")),
                "gpu_wasted": _hours(self.wasted("gpu")),
            },
            "jobs": [group.to_json() for group in self.groups],
            "failures": [failure.to_json() for failure in self.failures],
            "sweeps": [outcome.to_json() for outcome in self.outcomes],
            "alone": self.alone,
            "trials": list(self.tries),
        }


def _hours(seconds: float | None) -> float | None:
    return None if seconds is None else seconds / 3600


def add(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def groups_of(
    jobs: Sequence[Job], works: Mapping[int, Work], *, now: float, margins: Margins = DEFAULT
) -> list[Group]:
    """Jobs by what they asked for, the costliest first; and what ran in none of them."""
    alone: dict[tuple[Any, ...], list[tuple[Job, Use]]] = {}
    for job in jobs:
        work = works.get(job["sweep"] or 0)
        workers, attempts = (work["agents"], work["attempts"]) if work else ([], [])
        use = use_of(job, workers, attempts, now=now)
        alone.setdefault((job["cluster"], *alike(job["asked"])), []).append((job, use))
    groups = [
        Group([job for job, _ in pairs], [use for _, use in pairs], _advice(pairs, margins))
        for pairs in alone.values()
    ]
    groups.sort(
        key=lambda group: -((group.total("cpu_held") or 0) + 20 * (group.total("gpu_held") or 0))
    )
    return groups


def group_outside(
    jobs: Sequence[Job], works: Mapping[int, Work], *, now: float, margins: Margins = DEFAULT
) -> Group | None:
    """What ran on a machine of one's own, or in a job that runyard did not submit."""
    attempts: list[Effort] = []
    for work in works.values():
        inside = {
            agent["key"]
            for agent in work["agents"]
            if any(is_in(job, agent["job"]) for job in jobs)
        }
        attempts += [attempt for attempt in work["attempts"] if attempt["agent"] not in inside]
    if not any(attempt["usage"] for attempt in attempts):
        return None
    return Group([], [use_outside(attempts, now=now)], wishes(attempts, now=now, margins=margins))


def _advice(pairs: Sequence[tuple[Job, Use]], margins: Margins) -> list[Change]:
    ended = [(job, use) for job, use in pairs if job["ended_at"] is not None]
    return changes([job for job, _ in ended], [use for _, use in ended], margins)


def failures_of(outcomes: Sequence[Outcome], works: Mapping[int, Work]) -> list[Failure]:
    """Over all sweeps."""
    by_cause: dict[str, Failure] = {}
    for outcome in outcomes:
        work = works[outcome.sweep["key"]]
        for failure in failures(outcome.trials, work["attempts"], work["causes"]):
            before = by_cause.get(failure.cause)
            if before is not None:
                failure = replace(
                    before,
                    attempts=before.attempts + failure.attempts,
                    trials=before.trials + failure.trials,
                    failed=before.failed + failure.failed,
                    seconds=before.seconds + failure.seconds,
                    core_seconds=before.core_seconds + failure.core_seconds,
                )
            by_cause[failure.cause] = failure
    return sorted(
        by_cause.values(), key=lambda failure: (-failure.failed, -failure.attempts, failure.cause)
    )


def tries_of(outcome: Outcome, work: Work) -> list[dict[str, Any]]:
    """A row a trial: what it was given, what it came to, and what it used over all attempts."""
    of_trial: dict[int, list[Effort]] = {}
    for attempt in work["attempts"]:
        of_trial.setdefault(attempt["trial"], []).append(attempt)
    workers = {agent["key"]: agent for agent in work["agents"]}
    rows = []
    for trial in outcome.trials:
        efforts = of_trial.get(trial["number"], [])
        jobs = [workers[effort["agent"]]["job"] for effort in efforts if effort["agent"] in workers]
        rows.append(
            {
                "run": trial["id"],
                "name": trial["name"],
                "project": outcome.sweep["project"],
                "sweep": outcome.sweep["id"],
                "number": trial["number"],
                "state": trial["state"],
                "cause": trial["cause"],
                "attempts": trial["attempts"],
                "seconds": trial["seconds"],
                "jobs": " ".join(dict.fromkeys(job for job in jobs if job)),
                "node": trial["node"],
                **_used(efforts),
                **{f"config.{name}": value for name, value in trial["values"].items()},
                **trial["metrics"],
            }
        )
    return rows


def _used(efforts: Sequence[Effort]) -> dict[str, float | None]:
    usages = [effort["usage"] for effort in efforts if effort["usage"]]
    used: dict[str, float | None] = {
        "cpu_seconds": add([usage.get("cpu_seconds") for usage in usages])
    }
    for name in ("memory_peak", "vram_peak", "gpu_use"):
        values = [usage[name] for usage in usages if name in usage]
        used[name] = max(values) if values else None
    return used
