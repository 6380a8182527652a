"""Jobs, agents, attempts and trials as the server tells of them, with what a test cares for."""

from __future__ import annotations

from typing import Any

from runyard.report.advice import changes
from runyard.report.efficiency import use_of
from runyard.report.findings import Group, Outcome, Report
from runyard.report.settings import Aim, ranked, settings_of
from runyard.shapes.jobs import Job
from runyard.shapes.sweeps import (
    Effort,
    Importance,
    Parameter,
    Step,
    Sweep,
    Trial,
    TrialColumns,
    Weight,
    Work,
    Worker,
)

GIB = 1 << 30
HOUR = 3600.0


def job(**given: Any) -> Job:
    """One task of 8 CPUs, 32 GB and a day, that ran for two hours and is over."""
    whole: dict[str, Any] = {
        "key": 1, "cluster": "narval", "job_id": "4021", "user": "ada", "mine": True, "sweep": 1,
        "sweep_id": "s1", "sweep_name": "s1", "entity": "ada", "project": "birds", "kind": "agents",
        "name": "birds", "array": None, "tasks": 1, "folder": "", "log_pattern": None,
        "asked": {"cpus": 8, "memory": 32 * 1024, "time": 86400.0}, "snapshot": None,
        "submitted_at": 0.0, "polled_at": 1.0, "states": {"COMPLETED": 1}, "reason": None,
        "starts_at": None, "started_at": 0.0, "ended_at": 2 * HOUR, "used": {}, "wish": None,
    }  # fmt: skip
    return {**whole, **given}  # type: ignore[typeddict-item]


def accounted(**given: Any) -> dict[str, Any]:
    """What Slurm's accounting told of that job."""
    return {
        "tasks": 1, "seconds": 2 * HOUR, "longest_seconds": 2 * HOUR, "limit_seconds": 86400.0,
        "cpu_seconds": 2.6 * HOUR, "cpu_seconds_held": 16 * HOUR, "memory_peak": int(4.9 * GIB),
        "memory_asked": 32 * GIB, **given,
    }  # fmt: skip


def worker(key: int = 1, task: str = "4021", begin: float = 0.0, end: float = 2 * HOUR) -> Worker:
    return Worker(key=key, kind="own", host="n1", slots=1, packing=None, job=task, node="n1",
                  created_at=begin, heard_at=end, left_at=end)  # fmt: skip


def effort(trial: int = 1, begin: float = 0.0, end: float | None = HOUR, **given: Any) -> Effort:
    whole: dict[str, Any] = {
        "trial": trial, "number": 1, "agent": 1, "host": "n1", "started_at": begin, "ended_at": end,
        "exit_code": 0, "cause": "finished" if end is not None else None, "usage": None,
    }  # fmt: skip
    return {**whole, **given}  # type: ignore[typeddict-item]


def trial(number: int, value: float | None, state: str = "finished", **given: Any) -> Trial:
    whole: dict[str, Any] = {
        "number": number, "id": f"run{number:05}", "run": number, "name": f"lr{number}",
        "state": state, "cause": state if state != "failed" else "program",
        "values": {"lr": number / 10}, "value": value, "attempts": 1, "agent": 1, "host": "n1",
        "metrics": {} if value is None else {"loss": value}, "node": "n1", "job": "4021",
        "usage": None, "began_at": 0.0, "created_at": 0.0, "started_at": 0.0, "ended_at": HOUR,
        "seconds": HOUR, "exit_code": 0 if state == "finished" else 1,
    }  # fmt: skip
    return {**whole, **given}  # type: ignore[typeddict-item]


def sweep(trials: list[Trial], **given: Any) -> Sweep:
    states = [one["state"] for one in trials]
    whole: dict[str, Any] = {
        "key": 1, "id": "abcd1234", "name": "birds", "description": None, "entity": "ada",
        "project": "birds", "method": "random", "state": "finished", "cause": None, "config": {},
        "run_cap": len(trials), "expected": len(trials), "trials": len(trials),
        "counts": {state: states.count(state) for state in set(states)},
        "attempts": len(trials), "agents": [], "metric": "loss", "goal": "minimize", "best": None,
        "eta_seconds": 0.0, "seed": 1, "folder": None, "created_at": 0.0, "started_at": 0.0,
        "ended_at": 2 * HOUR,
    }  # fmt: skip
    return {**whole, **given}  # type: ignore[typeddict-item]


def columns(trials: list[Trial]) -> TrialColumns:
    """As the server puts them: one parameter, `lr`, from 0 to 1."""
    steps: list[Step] = []
    counted = [one for one in trials if one["state"] in ("finished", "stopped")]
    for order, one in enumerate(counted, 1):
        if one["value"] is not None and (not steps or one["value"] < steps[-1]["value"]):
            at = one["ended_at"] or 0.0
            steps.append(Step(order=order, number=one["number"], value=one["value"], at=at))
    lr = Parameter(
        name="lr",
        categories=0,
        said="numbers from 0 to 1",
        searched=True,
        ticks=[{"place": place, "value": place} for place in (0.0, 0.5, 1.0)],
    )
    return TrialColumns(
        metrics=[{"name": "loss", "goal": "minimize", "target": None}],
        parameters=[lr],
        trials={
            "number": [one["number"] for one in trials],
            "name": [one["name"] for one in trials],
            "state": [one["state"] for one in trials],
            "ended": [place for place, _ in enumerate(trials, 1)],
        },
        values={"lr": [one["values"]["lr"] for one in trials]},
        places={"lr": [one["values"]["lr"] / 10 for one in trials]},
        measured={"loss": [one["value"] for one in trials]},
        front=[],
        convergence=steps,
    )


def importance(trials: int = 12) -> Importance:
    share = Weight(name="lr", share=0.7, is_sure=True, best="highest")
    return Importance(metric="loss", trials=trials, needed=10, explained=0.7, parameters=[share])


def report(trials: list[Trial] | None = None, **given: Any) -> Report:
    """Of a sweep in one accounted job."""
    trials = trials or [trial(number, 1.0 + abs(number - 7) / 10) for number in range(1, 13)]
    aims = [Aim("loss", maximize=False)]
    ended = [one for one in trials if one["state"] == "finished"]
    settings = ranked(settings_of(ended, aims, None), aims)
    outcome = Outcome(sweep(trials), trials, aims, settings, columns(trials), importance())
    [one] = jobs = [job(used=accounted())]
    uses = [use_of(one, [worker()], [], now=2 * HOUR)]
    whole: dict[str, Any] = {
        "kind": "sweep", "title": "birds", "about": ["sweep abcd1234", "12 trials"],
        "groups": [Group(jobs, uses, changes(jobs, uses))], "outcomes": [outcome], "made_at": 0.0,
    }  # fmt: skip
    return Report(**{**whole, **given})


def work(attempts: list[Effort]) -> Work:
    causes = {"program": "the program failed", "memory": "out of memory", "time": "cut off"}
    return Work(agents=[worker()], attempts=attempts, causes=causes)
