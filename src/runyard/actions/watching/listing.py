"""Runs or sweeps, the newest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from runyard.actions.naming import find_sweep
from runyard.client.api import Api, Run
from runyard.client.sweeps import Sweep
from runyard.errors import UsageError

RUN_STATES = (
    "pending", "running", "finished", "failed", "crashed", "killed", "preempting", "preempted",
)  # fmt: skip
SWEEP_STATES = ("running", "paused", "finished", "canceled", "failed")
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


def list_sweeps(api: Api, request: ListRequest) -> Listed[Sweep]:
    _check_state("sweep", request.state, SWEEP_STATES)
    sweeps = api.sweeps.sweeps(project=request.project)
    chosen = [sweep for sweep in sweeps if request.state in (None, sweep["state"])]
    shown = chosen[: request.limit]
    return Listed(shown, len(chosen) > len(shown))


def _check_state(kind: str, state: str | None, states: Sequence[str]) -> None:
    if state is not None and state not in states:
        raise UsageError(f"no {kind} is ever {state}", mend=f"it is one of {', '.join(states)}")
