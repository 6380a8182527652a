"""A sweep file's contents, checked as a whole and typed.

`read_sweep` takes plain data from any source and never raises on bad data: it returns all problems
at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runyard.reading.fields import Fields
from runyard.reading.problems import Findings, Problem, closest, kind_of, listed, show
from runyard.search.command import read_command
from runyard.search.consistency import check_consistency, check_fixed_words, check_launching
from runyard.search.early_terminate import Asha, EarlyTerminate, Hyperband, read_early_terminate
from runyard.search.objectives import Constraint, Metric, read_metric, read_metrics
from runyard.search.options import METHODS, OPTION_KEYS, Extension, Options, read_extension
from runyard.search.parameters import read_parameters
from runyard.search.scheduler import names_search_space, read_scheduler
from runyard.search.space import Space
from runyard.search.sweep_shape import Sweep
from runyard.search.tasks import COMMAND_LINE

__all__ = ["Asha", "Constraint", "Hyperband", "Metric", "Options", "Sweep", "read_sweep"]

WANDB_METHODS = ("grid", "random", "bayes", "custom")
BARRED, LONGEST_PROJECT = "/\\#?%:", 128  # W&B's rule, which its client checks
KEYS = (
    "method",
    "parameters",
    "metric",
    "metrics",
    "program",
    "command",
    "early_terminate",
    "run_cap",
    "name",
    "description",
    "entity",
    "project",
    "controller",
    "scheduler",
    "job",
    "image_uri",
    "apiVersion",
    "kind",
    "settings",  # written by `wandb sweep --settings`
    "runyard",
)


def read_sweep(data: Any) -> tuple[Sweep | None, list[Problem]]:
    """The sweep, and all problems; no sweep if one of them is an error."""
    findings = Findings()
    sweep = _read(data, findings)
    return (None if findings.has_errors else sweep), list(findings)


def _read(data: Any, findings: Findings) -> Sweep | None:
    if not isinstance(data, Mapping):
        what = "the sweep is empty" if data is None else f"the sweep is {kind_of(data)}"
        findings.error((), what, "write a mapping with method and parameters")
        return None
    fields = Fields(_without_empty(data, findings), (), findings)
    fields.allow(KEYS, lambda key: _top_mend(key, data))
    extension = _read_runyard(fields)
    method = _read_method(fields, extension)
    scheduler = read_scheduler(fields)
    stopping = _read_stopping(fields, extension)
    space = _read_space(fields)
    sweep = Sweep(
        method=method or "random",
        space=space,
        metrics=_read_objectives(fields, extension),
        constraints=extension.constraints,
        # With a scheduler it is that one's to apply.
        early_terminate=None if scheduler else stopping,
        run_cap=fields.integer("run_cap", least=1),
        program=fields.text("program"),
        command=read_command(
            fields,
            (*space.top_names, COMMAND_LINE) if extension.options.tasks else space.top_names,
        ),
        name=fields.text("name"),
        description=fields.text("description"),
        entity=fields.text("entity"),
        project=_read_project(fields),
        controller=_read_controller(fields),
        scheduler=scheduler,
        options=extension.options,
    )
    check_consistency(sweep, fields)
    check_launching(fields)
    check_fixed_words(fields)
    return sweep


def _top_mend(key: str, data: Mapping[Any, Any]) -> str | None:
    """Mends for keys at the wrong level: usually a parameter, or one of runyard's own keys."""
    value = data.get(key)
    if key in OPTION_KEYS:
        return f"move it under runyard: {{{key}: …}}"
    if isinstance(value, Mapping) and {"value", "values", "min", "distribution"} & set(value):
        return "a parameter stands under parameters:, and is indented there"
    return None


def _without_empty(data: Mapping[Any, Any], findings: Findings) -> Mapping[Any, Any]:
    """Without keys that are null: people write `early_terminate: null` to switch a part off."""
    empty = [key for key, value in data.items() if value is None and key in KEYS[2:]]
    for key in empty:
        findings.warn((key,), f"{key} is empty, and counts as not written", "remove the key")
    return {key: value for key, value in data.items() if key not in empty}


def _read_runyard(fields: Fields) -> Extension:
    inner = fields.mapping("runyard", "write a mapping, such as {seeds: 3}")
    return read_extension(inner) if inner else Extension()


def _read_method(fields: Fields, extension: Extension) -> str | None:
    if "method" not in fields:
        fields.findings.error((), "there is no method", f"add method: {listed(WANDB_METHODS)}")
        return extension.method
    method = fields.data["method"]
    if isinstance(method, str) and method in WANDB_METHODS:
        return extension.method or method
    if method in METHODS:
        mend = f"write a method that W&B has (random), and runyard: {{method: {method}}} beside it"
    else:
        near = closest(method, (*WANDB_METHODS, *METHODS))
        mend = f"did you mean {near}?" if near else f"write {listed(WANDB_METHODS)}"
    fields.error("method", f"method is {kind_of(method)}", mend)
    return None


def _read_space(fields: Fields) -> Space:
    if "parameters" not in fields:
        if names_search_space(fields):
            return Space(())
        fields.findings.error(
            (), "there are no parameters", "add parameters: {lr: {values: [0.1, 0.01]}}"
        )
        return Space(())
    return read_parameters(fields.data["parameters"], ("parameters",), fields.findings)


def _read_objectives(fields: Fields, extension: Extension) -> tuple[Metric, ...]:
    single = None
    if "metric" in fields:
        single = read_metric(fields.data["metric"], ("metric",), fields.findings)
    if extension.metrics:
        return extension.metrics
    if "metrics" in fields:
        return read_metrics(fields.data["metrics"], ("metrics",), fields.findings)
    return (single,) if single else ()


def _read_stopping(fields: Fields, extension: Extension) -> EarlyTerminate | None:
    inner = fields.mapping("early_terminate", "write {type: hyperband, min_iter: 3}")
    rule = read_early_terminate(inner, ("hyperband",)) if inner else None
    return extension.early_terminate or rule


def _read_project(fields: Fields) -> str | None:
    name = fields.text("project")
    if name is not None and (set(name) & set(BARRED) or len(name) > LONGEST_PROJECT):
        fields.error(
            "project",
            f"{show(name)} is no name for a project",
            f"write at most {LONGEST_PROJECT} characters, and none of {' '.join(BARRED)}",
        )
    return name


def _read_controller(fields: Fields) -> str:
    inner = fields.mapping("controller", "write {type: local}")
    if inner is None:
        return "cloud"
    if "type" not in inner:
        fields.error("controller", "controller has no type", "add type: cloud, or type: local")
    return inner.word("type", ("cloud", "local")) or "cloud"
