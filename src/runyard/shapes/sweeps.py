"""Sweeps, trials and agents, as the server's API answers."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from runyard.shapes.runs import Execution, Place


class Problem(TypedDict):
    """What is wrong in a sweep's file, where, and what to write instead."""

    path: list[str | int]
    message: str
    mend: str


class Trial(TypedDict):
    """One setting of a sweep. `value` is the first metric, `values` are the settings."""

    number: int
    id: str
    run: int | None
    name: str
    state: str
    cause: str | None
    values: dict[str, Any]
    value: float | None
    metrics: dict[str, float]
    attempts: int
    agent: int | None
    host: str | None
    node: str | None
    job: str | None
    usage: dict[str, Any] | None
    began_at: float | None
    created_at: float
    started_at: float | None
    ended_at: float | None
    seconds: float
    seconds_left: float | None
    exit_code: int | None


class AgentHead(TypedDict):
    """`job` is Slurm's: 123, or 123_4 in an array. `packing`: how GPUs are shared, in words."""

    key: int
    kind: str
    host: str
    slots: int
    packing: str | None
    job: str | None
    node: str | None
    created_at: float
    heard_at: float


class SweepAgent(AgentHead):
    """`over_since`: since when a program of its runs on although its run has ended."""

    pid: int | None
    running: int
    usage: dict[str, Any] | None
    over_since: float | None


class SweepBudget(TypedDict):
    """In hours of `unit`: gpu-hours, or hours of trials; `planned`: with what open trials take."""

    limit: float
    unit: str
    used: float
    planned: float


class Sweep(Place):
    """One sweep as the server tells it. `expected` is null where it has no end of its own; `chance`
    is that a new setting beats the best by a hundredth, as the search's model sees it: a number
    if it is so low that the sweep may be stopped, else null."""

    description: str | None
    method: str
    state: str
    cause: str | None
    config: dict[str, Any]
    run_cap: int | None
    budget: SweepBudget | None
    chance: float | None
    expected: int | None
    counts: dict[str, int]
    trials: int
    attempts: int
    agents: list[SweepAgent]
    metric: str | None
    goal: str | None
    best: Trial | None
    eta_seconds: float | None
    seed: int
    folder: str | None
    created_at: float
    started_at: float | None
    ended_at: float | None


class CreatedSweep(Sweep):
    warnings: list[Problem]


class Worker(AgentHead):
    """An agent that works on a sweep, or did."""

    left_at: float | None


class Effort(Execution):
    """One attempt of a trial, by the trial's number."""

    trial: int
    agent: int | None


class Work(TypedDict):
    """All that was done for a sweep; `causes` says in words why attempts end."""

    agents: list[Worker]
    attempts: list[Effort]
    causes: dict[str, str]


class Metric(TypedDict):
    name: str
    goal: Literal["minimize", "maximize"]
    target: float | None


class Limit(TypedDict):
    name: str
    bound: float
    above: bool


class Tick(TypedDict):
    place: float
    value: Any


class Parameter(TypedDict):
    """How a parameter is drawn; `categories` is 0 for a number."""

    name: str
    categories: int
    said: str
    searched: bool
    ticks: list[Tick]


class Step(TypedDict):
    order: int
    number: int
    value: float
    at: float


class TrialColumns(TypedDict):
    """A sweep's trials as columns; `convergence` has each that was better than all before it."""

    metrics: list[Metric]
    parameters: list[Parameter]
    trials: dict[str, list[Any]]
    values: dict[str, list[Any]]
    places: dict[str, list[float | None]]
    measured: dict[str, list[Any]]
    front: list[int]
    convergence: list[Step]


class SweepColumns(TrialColumns):
    """Where `whole` is false, only the trials that changed. `last`: what summaries say now."""

    revision: int
    whole: bool
    sweep: Sweep
    text: str
    limits: list[Limit]
    last: dict[str, list[Any]]


class Weight(TypedDict):
    """How much one parameter matters; `best`: where on its axis the best trials are."""

    name: str
    share: float
    is_sure: bool
    best: Literal["lowest", "between", "highest"] | None


class Importance(TypedDict):
    """How much each parameter matters; `explained` is null where too few trials tell."""

    metric: str
    trials: int
    needed: int
    explained: float | None
    parameters: list[Weight]


class Keyed(TypedDict, total=False):
    """A key for the agent and its programs, where it asked for one."""

    key: str


class Begun(Keyed):
    """Which agent it is, and within how many seconds it must be heard again."""

    agent: int
    lease_seconds: float


class ClaimedRun(Place):
    """The run that a trial is: where it is tracked, and how many rows it has already."""

    folder: str | None
    steps: int


class Claimed(TypedDict, total=False):
    """`do`: run what follows; wait, and claim again; or exit, since the sweep is over."""

    do: Literal["run", "wait", "exit"]
    why: str
    refusal: str
    trial: Trial
    attempt: int
    run: ClaimedRun
    command: list[Any] | None
    program: str | None
    args: dict[str, Any]
    task: dict[str, Any] | None
    sweep: str
    is_search: bool
    warm: list[str]
    claims_with_end: bool


class Held(TypedDict):
    """An attempt that an agent has."""

    trial: int
    attempt: int


class Stop(Held):
    why: Literal["stopped", "canceled", "paused", "nan", "lost"]


class Over(Held):
    """An attempt whose client has ended the run, with the exit code that it told."""

    exit_code: int


class Renewed(Keyed):
    stop: list[Stop]
    over: list[Over]
    lease_seconds: float


class AgentTrial(TypedDict):
    """A trial that an agent has at work."""

    number: int
    id: str
    name: str
    run: int | None
    attempt: int
    began_at: float | None
    usage: dict[str, Any] | None


class PastAgent(AgentHead):
    pid: int | None
    left_at: float | None
    why: str | None
    sweep: int
    sweep_id: str
    sweep_name: str
    sweep_state: str
    entity: str
    project: str


class Agent(PastAgent):
    running: list[AgentTrial]


class Node(TypedDict):
    name: str
    agents: int
    slots: int
    running: int
    jobs: list[str]


class Agents(TypedDict):
    revision: int
    agents: list[Agent]
    gone: list[PastAgent]
    nodes: list[Node]
