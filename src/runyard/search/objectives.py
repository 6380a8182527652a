"""The objectives of a sweep: metrics to minimise or maximise, and constraints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from runyard.reading.fields import Fields
from runyard.reading.problems import Findings, Path, choose, kind_of, show

Goal: TypeAlias = Literal["minimize", "maximize"]
Impute: TypeAlias = Literal["worst", "best", "latest"]

GOALS = ("minimize", "maximize")
IMPUTES = ("worst", "best", "latest")
METRIC_KEYS = ("name", "goal", "target", "impute", "impute_while_running")
CONSTRAINT_KEYS = ("metric", "max", "min")


@dataclass(frozen=True)
class Metric:
    """A logged number. `impute` None: the file does not set it. `impute_while_running` None: a
    running trial does not count."""

    name: str
    goal: Goal = "minimize"
    target: float | None = None
    impute: Impute | None = None
    impute_while_running: Impute | None = None


@dataclass(frozen=True)
class Constraint:
    """A bound on a logged number: at most (`max`) or at least (`min`)."""

    metric: str
    bound: float
    direction: Literal["max", "min"]

    def excess(self, value: float) -> float:
        """How far a value is beyond the bound; 0 or less: the constraint holds."""
        return value - self.bound if self.direction == "max" else self.bound - value


def read_metric(data: Any, path: Path, findings: Findings) -> Metric | None:
    if not isinstance(data, Mapping):
        example = data if isinstance(data, str) and data else "loss"
        findings.error(
            path,
            f"metric is {kind_of(data)}; a mapping is wanted",
            f"write {{name: {example}, goal: minimize}}",
        )
        return None
    fields = Fields(data, path, findings)
    fields.allow(METRIC_KEYS)
    if "name" not in fields:
        findings.error(path, "the metric has no name", "add name: …, exactly as it is logged")
    name = fields.text("name", required=True)
    goal = fields.word("goal", GOALS) or "minimize"
    target = fields.number("target")
    impute = fields.word("impute", IMPUTES)
    while_running = _read_while_running(fields)
    if name is None:
        return None
    return Metric(name, cast("Goal", goal), target, cast("Impute | None", impute), while_running)


def _read_while_running(fields: Fields) -> Impute | None:
    value = fields.data.get("impute_while_running", "false")
    # W&B wants the text "false"; a plain false means the same.
    if value is False or value == "false":
        return None
    if value not in IMPUTES:
        fields.error(
            "impute_while_running",
            f"impute_while_running is {kind_of(value)}",
            choose(value, ("false", *IMPUTES)),
        )
        return None
    fields.warn(
        "impute_while_running",
        "impute_while_running has no effect here",
        "leave it out: the search keeps away from what is at work by itself",
    )
    return cast("Impute", value)


def read_metrics(data: Any, path: Path, findings: Findings) -> tuple[Metric, ...]:
    """At least two metrics with different names."""
    if not isinstance(data, list | tuple) or len(data) < 2:
        findings.error(
            path,
            f"metrics is {kind_of(data)}"
            if not isinstance(data, list)
            else "one metric is no list",
            "write at least two metrics, each a {name, goal}; a single one goes under metric",
        )
        return ()
    read = [read_metric(entry, (*path, index), findings) for index, entry in enumerate(data)]
    metrics = [metric for metric in read if metric is not None]
    for index, metric in enumerate(read):
        if metric and metric.name in [other.name for other in read[:index] if other]:
            findings.error((*path, index), f"{show(metric.name)} stands twice", "remove one")
    return tuple(metrics)


def read_constraints(data: Any, path: Path, findings: Findings) -> tuple[Constraint, ...]:
    if not isinstance(data, list | tuple):
        findings.error(
            path,
            f"constraints is {kind_of(data)}; a list is wanted",
            "write a list such as [{metric: latency, max: 10}]",
        )
        return ()
    read = [_read_constraint(entry, (*path, index), findings) for index, entry in enumerate(data)]
    return tuple(constraint for constraint in read if constraint is not None)


def _read_constraint(data: Any, path: Path, findings: Findings) -> Constraint | None:
    if not isinstance(data, Mapping):
        findings.error(path, f"a constraint is {kind_of(data)}", "write {metric: latency, max: 10}")
        return None
    fields = Fields(data, path, findings)
    fields.allow(CONSTRAINT_KEYS)
    if "metric" not in fields:
        findings.error(path, "the constraint names no metric", "add metric: …")
    name = fields.text("metric", required=True)
    if ("max" in fields) == ("min" in fields):
        findings.error(
            path,
            "a constraint has either max or min",
            "write max: … for at most, min: … for at least; for both write two constraints",
        )
        return None
    direction: Literal["max", "min"] = "max" if "max" in fields else "min"
    bound = fields.number(direction)
    return None if name is None or bound is None else Constraint(name, bound, direction)
