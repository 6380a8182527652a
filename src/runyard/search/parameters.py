"""Turns the `parameters` of a sweep file into a search space; notes every mistake."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from runyard.reading.fields import Fields
from runyard.reading.problems import Findings, Path, choose, closest, kind_of, listed, show
from runyard.search.distributions import Categorical, Distribution
from runyard.search.forms import CATEGORICAL, CONSTANT, DISTRIBUTIONS, FORMS, WEIGHTED
from runyard.search.numbers import read_numbers
from runyard.search.space import Constant, Leaf, Space
from runyard.search.values import identity

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
GROUP = "parameters"


# For so many unknown keys, a similar known key is suggested.
_MOST_GUESSED = 100


def read_parameters(data: Any, path: Path, findings: Findings) -> Space:
    """The space of `parameters`, as far as it can be read."""
    leaves: list[Leaf] = []
    constants: list[Constant] = []
    _read_group(data, path, (), findings, leaves, constants)
    return Space(_sorted(leaves), tuple(constants))


def path_in_file(names: Sequence[str]) -> Path:
    """The path of a parameter in the document, from its name and its groups."""
    return tuple(step for name in names for step in (GROUP, name))


def _sorted(leaves: list[Leaf]) -> tuple[Leaf, ...]:
    """Sorted by name at each level, as in W&B: this is the order of a grid."""
    numbered = [replace(leaf, position=position) for position, leaf in enumerate(leaves)]
    return tuple(sorted(numbered, key=lambda leaf: leaf.path))


def _read_group(
    data: Any,
    path: Path,
    groups: tuple[str, ...],
    findings: Findings,
    leaves: list[Leaf],
    constants: list[Constant],
) -> None:
    example = "write a name and what it can be, such as lr: {min: 0.001, max: 0.1}"
    if not isinstance(data, Mapping):
        findings.error(path, f"parameters is {kind_of(data)}; a mapping is wanted", example)
        return
    if not data:
        findings.error(path, "parameters is empty", example)
    for name, entry in data.items():
        here = (*path, name)
        if not _check_name(name, here, findings):
            continue
        if not isinstance(entry, Mapping):
            findings.error(here, f"{name} is {kind_of(entry)}; a mapping is wanted", _wrap(entry))
            continue
        fields = Fields(entry, here, findings)
        if GROUP in entry:
            fields.allow((GROUP,), _group_mend)
            _read_group(entry[GROUP], (*here, GROUP), (*groups, name), findings, leaves, constants)
            continue
        read = _read_parameter(name, fields)
        if isinstance(read, Categorical) and len(read.options) == 1:
            constants.append(Constant((*groups, name), read.options[0], listed=True))
        elif isinstance(read, _Value):
            constants.append(Constant((*groups, name), read.value))
        elif read is not None:
            leaves.append(Leaf((*groups, name), read))


class _Value:
    """A constant's value, which may be None."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _read_parameter(name: str, fields: Fields) -> Distribution | _Value | None:
    form = _form_of(name, fields)
    if form is None:
        return None
    if form == CONSTANT:
        fields.allow(("distribution", "value"), lambda key: _value_mend(key, fields))
        if "value" not in fields:
            fields.error("distribution", "constant has no value", "add value: …")
            return None
        return _Value(fields.data["value"])
    if form in (CATEGORICAL, WEIGHTED):
        return _read_values(form, fields)
    return read_numbers(form, FORMS[form], fields)


def _form_of(name: str, fields: Fields) -> str | None:
    """The named distribution, or the one that follows from the keys."""
    if "distribution" in fields:
        named = fields.data["distribution"]
        if not isinstance(named, str) or named not in DISTRIBUTIONS:
            near = closest(named, DISTRIBUTIONS)
            better = FORMS[near].replacement if near and near in FORMS else None
            mend = f"did you mean {better}?" if better else choose(named, DISTRIBUTIONS)
            fields.error("distribution", f"no distribution is called {show(named)}", mend)
            return None
        return named
    if "value" in fields:
        return CONSTANT
    if "values" in fields:
        return WEIGHTED if "probabilities" in fields else CATEGORICAL
    if "min" in fields and "max" in fields and "q" not in fields:
        return _form_of_bounds(name, fields)
    _explain_keys(name, fields)
    return None


def _form_of_bounds(name: str, fields: Fields) -> str | None:
    low, high = fields.number("min"), fields.number("max")
    if low is None or high is None:
        return None
    if isinstance(low, int) and isinstance(high, int):
        return "int_uniform"
    if isinstance(low, float) and isinstance(high, float):
        return "uniform"
    key, whole = ("min", low) if isinstance(low, int) else ("max", high)
    fields.error(
        key,
        f"{name} goes from {show(low)} to {show(high)}, one with a point and one without: "
        "whole numbers or any number in between?",
        f"write {key}: {show(whole)}.0, or add distribution: uniform",
    )
    return None


def _explain_keys(name: str, fields: Fields) -> None:
    """Why the keys match no form."""
    keys = set(map(str, fields.data))
    if not keys:
        message, mend = f"{name} says nothing", "add value, values, or min and max"
    elif "q" in keys:
        message, mend = "q needs the name of a distribution", "add distribution: q_uniform"
    elif keys & {"mu", "sigma"}:
        message = f"{listed(sorted(keys), 'and')} need the name of a distribution"
        mend = "add distribution: normal, or log_normal"
    elif keys & {"a", "b"}:
        message = f"{listed(sorted(keys), 'and')} need the name of a distribution"
        mend = "add distribution: beta"
    elif "probabilities" in keys:
        message, mend = "probabilities without values", "add values: […], one for each"
    elif keys & {"min", "max"}:
        there = "min" if "min" in keys else "max"
        other = "max" if there == "min" else "min"
        message, mend = f"{there} without {other}", f"add {other}: …"
    else:
        message = f"{name} has {listed(sorted(keys), 'and')}, and no value, values, min or max"
        for key in sorted(keys)[:_MOST_GUESSED]:
            near = closest(key, ("value", "values", "min", "max"))
            if near:
                fields.error(key, message, f"did you mean {near}?")
                return
        mend = f"add one; a group of parameters is written {name}: {{parameters: {{…}}}}"
    fields.findings.error(fields.path, message, mend)


def _read_values(form: str, fields: Fields) -> Categorical | None:
    weighted = form == WEIGHTED
    allowed = ("distribution", "values", *(("probabilities",) if weighted else ()))
    fields.allow(allowed, _values_mend)
    if "values" not in fields:
        fields.error("distribution", f"{form} has no values", "add values: […]")
        return None
    values = fields.items("values", "write values: [a, b, c]")
    if values is None:
        return None
    if not values:
        fields.error("values", "values is empty", "write at least one value")
        return None
    _warn_of_twins(values, fields)
    if not weighted:
        return Categorical(tuple(values))
    chances = _read_probabilities(len(values), fields)
    return None if chances is None else Categorical(tuple(values), chances)


def _warn_of_twins(values: list[Any], fields: Fields) -> None:
    seen: set[str] = set()
    for index, value in enumerate(values):
        known = identity(value)
        if known in seen:
            fields.findings.warn(
                (*fields.at("values"), index),
                f"{show(value)} stands twice in values",
                "remove one; a grid takes it once, random draws take it twice as often",
            )
        seen.add(known)


def _read_probabilities(count: int, fields: Fields) -> tuple[float, ...] | None:
    if "probabilities" not in fields:
        fields.error("distribution", f"{WEIGHTED} has no probabilities", "add one for each value")
        return None
    chances = fields.items("probabilities", "write one number for each value")
    if chances is None:
        return None
    inner = Fields(dict(enumerate(chances)), fields.at("probabilities"), fields.findings)
    for index, chance in enumerate(chances):
        if isinstance(chance, bool) or not isinstance(chance, int | float) or not chance >= 0:
            inner.error(index, f"{show(chance)} is no probability", "write a number from 0 to 1")
            return None
    if len(chances) != count:
        fields.error(
            "probabilities",
            f"{len(chances)} probabilities for {count} values",
            "write one for each value",
        )
        return None
    if not math.isclose(sum(chances), 1, rel_tol=1e-5):
        fields.error(
            "probabilities",
            f"the probabilities add up to {sum(chances):g}",
            "make them add up to 1",
        )
        return None
    return tuple(chances)


def _check_name(name: Any, path: Path, findings: Findings) -> bool:
    if isinstance(name, str) and NAME.fullmatch(name):
        return True
    if isinstance(name, bool):
        mend = 'quote it: YAML reads on, off, yes and no as truth values ("on")'
    else:
        better = re.sub(r"[^A-Za-z0-9_.-]+", "_", str(name).strip()) or "x"
        better = better if re.match(r"[A-Za-z_]", better) else f"_{better}"
        mend = f"write {better}, or another name of letters, digits, _, - and ."
    findings.error(path, f"{show(name)} is no name for a parameter", mend)
    return False


def _wrap(entry: Any) -> str:
    if isinstance(entry, list | tuple):
        return f"write {{values: {show(list(entry))}}}"
    return f"write {{value: {show(entry)}}}"


def _group_mend(key: str) -> str:
    return f"a group holds parameters and nothing else; move {key} into it, or out"


def _value_mend(key: str, fields: Fields) -> str | None:
    if key == "values":
        return "keep value (one) or values (a list to choose from), not both"
    if key in ("min", "max") and "value" in fields:
        return "keep value, or min and max, not both"
    return None


def _values_mend(key: str) -> str | None:
    if key == "value":
        return "keep value (one) or values (a list to choose from), not both"
    if key == "probabilities":
        return f"write distribution: {WEIGHTED}, or remove distribution"
    if key in ("min", "max"):
        return "keep values, or min and max, not both"
    return None
