"""Checks of several keys of a sweep together: each may be right alone, but wrong together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from runyard.reading.fields import Fields
from runyard.reading.problems import closest, kind_of, listed, show
from runyard.search.axes import axis_of
from runyard.search.distributions import Categorical
from runyard.search.names import placeholders, resolve
from runyard.search.parameters import path_in_file
from runyard.search.tasks import NUMBER

if TYPE_CHECKING:
    from runyard.search.sweep_shape import Sweep

MODEL_METHODS = ("bayes", "tpe", "cmaes")


def check_consistency(sweep: Sweep, fields: Fields) -> None:
    _check_metrics(sweep, fields)
    if sweep.method == "grid":
        _check_grid(sweep, fields)
    _check_seeds(sweep, fields)
    if sweep.options.tasks:
        _check_tasks(sweep, fields)
    if sweep.options.name is not None:
        _check_template(sweep, fields)


def check_launching(fields: Fields) -> None:
    """W&B's keys for Launch: checked as in W&B, without effect here."""
    if "job" in fields and "image_uri" in fields:
        fields.error("image_uri", "job and image_uri are both there", "keep one of them")
    for key in ("job", "image_uri"):
        if fields.text(key):
            fields.warn(
                key,
                f"{key} is for W&B Launch, and runyard starts no containers by itself",
                "runs are started by program or command",
            )


def _check_metrics(sweep: Sweep, fields: Fields) -> None:
    extension = fields.data.get("runyard")
    several = isinstance(extension, Mapping) and "metrics" in extension
    if "metric" in fields and "metrics" in fields:
        fields.error("metrics", "metric and metrics are both there", "keep metric, for one goal")
    elif "metrics" in fields and fields.data.get("method") != "custom" and not several:
        fields.error(
            "metrics",
            f"W&B knows metrics with method: custom alone, and method is "
            f"{show(fields.data.get('method'))}",
            "move metrics under runyard:",
        )
    named = {"metric", "metrics"} & set(map(str, fields.data)) or several
    if not named and sweep.method in MODEL_METHODS:
        fields.error(
            "method",
            f"{sweep.method} needs a metric to learn from, and there is none",
            "add metric: {name: val_loss, goal: minimize}, named as your program logs it",
        )
    elif not named and sweep.early_terminate is not None:
        fields.error(
            "early_terminate" if "early_terminate" in fields else "runyard",
            "early_terminate needs a metric to judge by, and there is none",
            "add metric: {name: val_loss, goal: minimize}, named as your program logs it",
        )
    if sweep.method == "cmaes" and len(sweep.metrics) > 1:
        fields.error("runyard", "cmaes follows one metric alone", "write method: tpe")
    single = fields.data.get("metric")
    name = single.get("name") if isinstance(single, Mapping) else None
    if several and sweep.metrics and name and name not in [each.name for each in sweep.metrics]:
        fields.warn(
            "metric",
            f"{show(name)} is not among runyard's metrics, which are followed here",
            "add it to runyard.metrics, or remove it",
        )


def _check_grid(sweep: Sweep, fields: Fields) -> None:
    for leaf in sweep.space.leaves:
        if axis_of(leaf.distribution) is not None:
            continue
        if isinstance(leaf.distribution, Categorical):
            what, mend = "a grid knows no probabilities", "remove them, or write method: random"
        else:
            what = f"a grid cannot run through every number that {leaf.path[-1]} can be"
            mend = (
                "write values: […], or min and max as whole numbers, or distribution: q_uniform "
                "with its step q; or method: random"
            )
        fields.findings.error(path_in_file(leaf.path), what, mend)


def _check_tasks(sweep: Sweep, fields: Fields) -> None:
    """Point n of the grid is task n: the only parameter is their number."""
    size = sweep.space.size if sweep.method == "grid" else None
    if sweep.space.top_names != {NUMBER} or size != len(sweep.options.tasks) or sweep.options.seeds:
        fields.findings.error(
            ("runyard", "tasks"),
            f"{len(sweep.options.tasks)} tasks are a grid of as many numbers, and nothing else",
            f"write method: grid, parameters: {{{NUMBER}: {{values: [1, 2, …]}}}}, no seeds; or "
            "let `runyard farm` write it",
        )


def _check_seeds(sweep: Sweep, fields: Fields) -> None:
    options = sweep.options
    parameters = fields.data.get("parameters")
    if options.seeds and isinstance(parameters, Mapping) and options.seed_parameter in parameters:
        fields.findings.error(
            ("parameters", options.seed_parameter),
            f"{options.seed_parameter} is a parameter, and runyard.seeds sets it as well",
            "remove one of the two, or write runyard: {seed_parameter: …} with another name",
        )
    if not options.seeds and "seed_parameter" in _mapping(fields.data.get("runyard")):
        fields.findings.warn(
            ("runyard", "seed_parameter"),
            "seed_parameter without seeds does nothing",
            "add seeds: 3, or remove it",
        )


def _check_template(sweep: Sweep, fields: Fields) -> None:
    template = sweep.options.name or ""
    path = ("runyard", "name")
    names = [leaf.name for leaf in sweep.space.leaves]
    fixed = ["/".join(constant.path) for constant in sweep.space.constants]
    if sweep.options.seeds:
        names.append(sweep.options.seed_parameter)
    rest = template
    for word in placeholders(template):
        rest = rest.replace(f"{{{word}}}", "")
        if resolve(word, names):
            continue
        if resolve(word, fixed):
            message, mend = f"{word} is the same in every trial", "write its value itself"
        else:
            near = closest(word, [name.replace("/", ".") for name in names])
            message = f"{show(word)} is no parameter that is searched"
            mend = f"did you mean {{{near}}}?" if near else f"write {listed(names) or 'no braces'}"
        fields.findings.error(path, message, mend)
    if "{" in rest or "}" in rest:
        fields.findings.error(path, "a brace has no other half", "write {name} for a value")
    elif not placeholders(template) and names:
        fields.findings.warn(
            path,
            f"every trial would be called {show(template)}, with a number behind it",
            f"take a parameter in: {template}_{{{names[0].replace('/', '.')}}}",
        )


def _mapping(value: object) -> Mapping[object, object]:
    return value if isinstance(value, Mapping) else {}


def check_fixed_words(fields: Fields) -> None:
    """apiVersion and kind, which say nothing about the search."""
    fields.text("apiVersion")
    kind = fields.data.get("kind")
    if "kind" in fields and kind != "sweep":
        fields.error("kind", f"kind is {kind_of(kind)}", "write kind: sweep, or remove it")
