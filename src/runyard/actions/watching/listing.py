"""Runs or sweeps, the newest first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from runyard.actions.naming import find_sweep
from runyard.client.api import Api
from runyard.errors import UsageError
from runyard.search.budget import tell_use
from runyard.shapes.runs import Run
from runyard.shapes.sweeps import Sweep, Trial
from runyard.vocabulary import RUN_STATES, SWEEP_STATES

# What `define_metric` can ask a summary to hold.
_SUMMARY_KINDS = ("best", "min", "max", "mean", "first", "last")
Record = TypeVar("Record", Run, Sweep)


@dataclass(frozen=True)
class ListRequest:
    """`sweep`: in the user's words; `limit`: None for all."""

    project: str | None = None
    state: str | None = None
    sweep: str | None = None
    limit: int | None = None


@dataclass(frozen=True)
class Listed(Generic[Record]):
    """`has_more`: the limit has left some out."""

    records: Sequence[Record]
    has_more: bool


def list_runs(api: Api, request: ListRequest) -> Listed[Run]:
    _check_state("run", request.state, RUN_STATES)
    # One more than is shown tells whether there are more.
    most = None if request.limit is None else request.limit + 1
    if request.sweep is not None:
        key = find_sweep(api, request.sweep)["key"]
        runs = api.runs(sweep=key, state=request.state, limit=most)
    else:
        runs = api.runs(project=request.project, state=request.state, limit=most)
    return Listed(runs[: request.limit], len(runs) == most)


def best_values(api: Api, sweep: str) -> dict[int, dict[str, float]]:
    """By the run's key: the best value that it has logged of each metric of the sweep."""
    trials = api.sweeps.trials(find_sweep(api, sweep)["key"])
    return {trial["run"]: trial["metrics"] for trial in trials if trial["run"] is not None}


def summary_numbers(run: Run, best: Mapping[str, float]) -> list[tuple[str, float]]:
    """The numbers of a run's summary, the most telling first, each under its name.

    First `best`, the metrics that the run's sweep ranks by; then those of
    `define_metric(summary=...)`, named by what they are: `acc (max)`.
    """
    summary = run["summary"]
    numbers: list[tuple[str, float]] = []
    for key, value in best.items():
        last = summary.get(key)
        numbers.append((f"{key} (best)", value))
        numbers += [(f"{key} (last)", last)] if isinstance(last, int | float) else []
    rest = {key: summary[key] for key in sorted(summary) if key[:1] != "_" and key not in best}
    numbers += [number for key, value in rest.items() for number in _defined_numbers(key, value)]
    return numbers + [pair for pair in rest.items() if isinstance(pair[1], int | float)]


def _defined_numbers(key: str, value: object) -> Iterator[tuple[str, float]]:
    if isinstance(value, dict) and "_type" not in value:
        for kind, number in value.items():
            if kind in _SUMMARY_KINDS and isinstance(number, int | float):
                yield f"{key} ({kind})", number


def list_sweeps(api: Api, request: ListRequest) -> Listed[Sweep]:
    _check_state("sweep", request.state, SWEEP_STATES)
    sweeps = api.sweeps.sweeps(project=request.project)
    chosen = [sweep for sweep in sweeps if request.state in (None, sweep["state"])]
    shown = chosen[: request.limit]
    return Listed(shown, len(chosen) > len(shown))


def _check_state(kind: str, state: str | None, states: Sequence[str]) -> None:
    if state is not None and state not in states:
        raise UsageError(f"no {kind} is ever {state}", mend=f"it is one of {', '.join(states)}")


def next_steps(sweep: Sweep, failed: Sequence[tuple[Trial, str]]) -> list[tuple[str, str]]:
    """What is worth a look after a sweep: the commands, each with what it shows."""
    key, best = sweep["id"], sweep["best"]
    steps = [(f"runyard runs --sweep {key}", "its trials")]
    if best is not None:
        table = "the Pareto front" if has_front(sweep) else "the best ones, as a table"
        steps.append((f"runyard show {key} --best", table))
        steps.append((f"runyard show {best['id']}", "the best one: its metrics, its curves"))
    if failed:
        steps.append((f"runyard logs {failed[-1][0]['id']}", "what a failed one printed"))
        steps.append((f"runyard retry {key}", "run the failed ones again"))
    return steps


def has_front(sweep: Sweep) -> bool:
    """Whether it is after several metrics, of which no trial may be the best in all."""
    config = sweep["config"]
    return bool(config.get("metrics") or config.get("runyard", {}).get("metrics"))


def sweep_notes(sweep: Sweep) -> list[str]:
    """What to know of a sweep beside its counts: its budget, and whether it may be stopped."""
    notes = []
    if sweep["budget"]:
        notes.append(f"budget: {tell_use(**sweep['budget'])}")
    if (chance := sweep["chance"]) is not None:
        percent = "under 0.1 %" if chance < 0.001 else f"{100 * chance:.1f} %"
        notes.append(
            "stop? The search expects no setting that beats the best by more than 1 % (chance "
            f"{percent}): `runyard cancel --finish {sweep['id']}`"
        )
    return notes
