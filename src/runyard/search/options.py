"""The `runyard:` key of a sweep file: options that W&B's files do not have."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Literal

from runyard.reading.fields import Fields
from runyard.reading.problems import kind_of, show
from runyard.search.budget import BadBudget, Budget, parse_budget
from runyard.search.early_terminate import EarlyTerminate, read_early_terminate
from runyard.search.objectives import Constraint, Metric, read_constraints, read_metrics
from runyard.search.parameters import NAME
from runyard.search.tasks import Task, read_tasks

METHODS = ("grid", "random", "bayes", "tpe", "cmaes", "qmc")

# How often a trial is retried, by the cause of its end.
RETRIES: Mapping[str, int] = MappingProxyType({"program": 0, "memory": 1, "node": 5})
STOP_AFTER_FAILURES = 5
# What happens to a trial whose metric is NaN or infinite several times in a row, or at its end.
NAN = ("stop", "keep")
MOST_SEEDS = 10_000
MODULE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")


@dataclass(frozen=True)
class Options:
    """The options under `runyard:`, with defaults."""

    seed: int | None = None
    seeds: tuple[int, ...] = ()
    seed_parameter: str = "seed"
    name: str | None = None
    retries: Mapping[str, int] = field(default_factory=lambda: RETRIES)
    retry_failed: bool = False
    stop_after_failures: int = STOP_AFTER_FAILURES
    nan: str = NAN[0]
    slots_per_gpu: int | Literal["auto"] | None = None
    warm: tuple[str, ...] = ()
    """Modules that are imported before a trial begins, once for many trials."""
    tasks: tuple[Task, ...] = ()
    job_log: str | None = None
    budget: Budget | None = None


@dataclass(frozen=True)
class Extension:
    """The whole key: the options, and what replaces W&B's own keys."""

    options: Options = field(default_factory=Options)
    method: str | None = None
    metrics: tuple[Metric, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    early_terminate: EarlyTerminate | None = None


OPTION_KEYS = (
    *(field.name for field in fields(Extension) if field.name != "options"),
    *(field.name for field in fields(Options)),
)


def read_extension(fields: Fields) -> Extension:
    fields.allow(OPTION_KEYS)
    path, findings = fields.path, fields.findings
    stopping = fields.mapping("early_terminate", "write {type: asha, min_iter: 1, max_iter: 27}")
    return Extension(
        options=_read_options(fields),
        method=fields.word("method", METHODS),
        metrics=read_metrics(fields.data["metrics"], (*path, "metrics"), findings)
        if "metrics" in fields
        else (),
        constraints=read_constraints(fields.data["constraints"], (*path, "constraints"), findings)
        if "constraints" in fields
        else (),
        early_terminate=read_early_terminate(stopping, ("asha", "hyperband")) if stopping else None,
    )


def _read_options(fields: Fields) -> Options:
    defaults = Options()
    failures = fields.integer("stop_after_failures", least=0)
    parameter = fields.text("seed_parameter")
    if parameter is not None and not NAME.fullmatch(parameter):
        fields.error(
            "seed_parameter",
            f"{show(parameter)} is no name for a parameter",
            "write a name of letters, digits, _, - and .",
        )
    return Options(
        seed=fields.integer("seed", least=0),
        seeds=_read_seeds(fields),
        seed_parameter=parameter or defaults.seed_parameter,
        name=fields.text("name"),
        retries=_read_retries(fields),
        retry_failed=fields.flag("retry_failed", default=False),
        stop_after_failures=defaults.stop_after_failures if failures is None else failures,
        nan=fields.word("nan", NAN) or defaults.nan,
        slots_per_gpu=_read_slots(fields),
        warm=_read_warm(fields),
        tasks=read_tasks(fields),
        job_log=fields.text("job_log"),
        budget=_read_budget(fields),
    )


def _read_seeds(fields: Fields) -> tuple[int, ...]:
    """A number n means 0 to n - 1; a list is used unchanged."""
    value: Any = fields.data.get("seeds")
    if not isinstance(value, list | tuple):
        count = fields.integer("seeds", least=1, default=0) or 0
        if count > MOST_SEEDS:
            fields.error("seeds", f"{count} seeds a setting", f"write at most {MOST_SEEDS}")
            return ()
        return tuple(range(count))
    wrong = [item for item in value if isinstance(item, bool) or not isinstance(item, int)]
    if wrong or not value:
        what = f"{show(wrong[0])} is no seed" if wrong else "seeds is an empty list"
        fields.error("seeds", what, "write whole numbers: seeds: [0, 1, 2], or how many: seeds: 3")
        return ()
    twins = [item for index, item in enumerate(value) if item in value[:index]]
    if twins:
        fields.error("seeds", f"the seed {twins[0]} stands twice", "write each seed once")
    return tuple(value)


def _read_retries(fields: Fields) -> Mapping[str, int]:
    value: Any = fields.data.get("retries")
    if not isinstance(value, Mapping):
        count = fields.integer("retries", least=0)
        if count is None:
            return RETRIES
        # A single number is for failures of the program; for nodes the default is the least.
        return MappingProxyType(
            {"program": count, "memory": count, "node": max(count, RETRIES["node"])}
        )
    inner = Fields(value, fields.at("retries"), fields.findings)
    inner.allow(RETRIES, _retries_mend)
    counts = {cause: inner.integer(cause, least=0, default=RETRIES[cause]) for cause in RETRIES}
    return MappingProxyType({cause: count or 0 for cause, count in counts.items()})


def _retries_mend(cause: str) -> str | None:
    if cause in ("time", "preempted"):
        return "remove it: a trial that is cut off goes on as long as it makes progress"
    return None


def _read_budget(fields: Fields) -> Budget | None:
    value: Any = fields.data.get("budget")
    if value is None and "budget" not in fields:
        return None
    try:
        return parse_budget(value)
    except BadBudget as error:
        fields.error("budget", str(error), error.mend)
        return None


def _read_slots(fields: Fields) -> int | Literal["auto"] | None:
    value: Any = fields.data.get("slots_per_gpu")
    if value == "auto":
        return "auto"
    if isinstance(value, str):
        fields.error("slots_per_gpu", f"slots_per_gpu is {kind_of(value)}", "write 2, or auto")
        return None
    return fields.integer("slots_per_gpu", least=1)


def _read_warm(fields: Fields) -> tuple[str, ...]:
    """One module, or a list of them."""
    value: Any = fields.data.get("warm")
    if value is None:
        return ()
    names = value if isinstance(value, list | tuple) else [value]
    wrong = [name for name in names if not (isinstance(name, str) and MODULE.fullmatch(name))]
    if wrong or not names:
        what = f"{show(wrong[0])} is no module" if wrong else "warm is an empty list"
        fields.error("warm", what, "write what a program imports: warm: torch, or [torch, numpy]")
        return ()
    return tuple(dict.fromkeys(names))
