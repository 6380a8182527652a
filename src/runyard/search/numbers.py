"""A parameter that is a number: its bounds, its step and its shape, checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from runyard.reading.fields import Fields
from runyard.reading.problems import show
from runyard.search.distributions import LEAST, MOST, Distribution, Quantised
from runyard.search.forms import FORMS, Form

# exp() of more overflows.
LARGEST_EXPONENT = 700
LARGEST_INTEGER = 2**63
# Beyond this many steps of q, a float cannot distinguish single steps.
MOST_STEPS = 2**53


def read_numbers(name: str, form: Form, fields: Fields) -> Distribution | None:
    fields.allow(("distribution", *form.keys), lambda key: _number_mend(key, name))
    keys: dict[str, Any] = {}
    sound = True
    for key in form.keys:
        if key not in fields and key in form.required:
            fields.error("distribution", f"{name} needs {key}", f"add {key}: …")
            sound = False
            continue
        value = fields.number(key) if key in fields else form.defaults[key]
        sound = sound and value is not None
        keys[key] = value
    if not sound or not _check_numbers(name, form, keys, fields):
        return None
    if form.replacement:
        _warn_of_exponents(name, form, keys, fields)
    return form.build(keys)


def _check_numbers(name: str, form: Form, keys: Mapping[str, Any], fields: Fields) -> bool:
    before = len(list(fields.findings))
    if form.required:
        _check_bounds(name, form, keys, fields)
    if "q" in keys and keys["q"] <= 0:
        fields.error("q", f"q is {show(keys['q'])}", "write the step, a number above 0")
    for key in ("a", "b"):
        if key in keys and keys[key] <= 0:
            fields.error(key, f"{key} is {show(keys[key])}", "write a number above 0")
    if "sigma" in keys and keys["sigma"] < 0:
        fields.error("sigma", f"sigma is {show(keys['sigma'])}", "write 0 or a number above it")
    if len(list(fields.findings)) > before:
        return False
    return _check_range(name, form, keys, fields)


def _check_bounds(name: str, form: Form, keys: Mapping[str, Any], fields: Fields) -> None:
    low, high = keys["min"], keys["max"]
    if low >= high:
        what = "the same" if low == high else "the wrong way round"
        mend = f"write value: {show(low)}" if low == high else f"write min: {high}, max: {low}"
        if low == high and "distribution" in fields:
            mend += " without distribution"
        fields.error("min", f"min {show(low)} and max {show(high)} are {what}", mend)
    if name == "int_uniform":
        for key in ("min", "max"):
            if isinstance(keys[key], float):
                whole = keys[key].is_integer()
                mend = f"write {int(keys[key])}" if whole else "write distribution: uniform"
                fields.error(key, f"{key} of int_uniform is {show(keys[key])}", mend)
            elif abs(keys[key]) >= LARGEST_INTEGER:
                fields.error(key, f"{key} {show(keys[key])} is too large", "write less than 2^63")
    if form.is_positive and low <= 0:
        fields.error("min", f"min {show(low)} has no logarithm", "write a min above 0")
    if form.has_exponents and max(abs(low), abs(high)) > LARGEST_EXPONENT:
        key = "min" if abs(low) > LARGEST_EXPONENT else "max"
        fields.error(
            key,
            f"{key} of {name} is an exponent of e, and e^{show(keys[key])} is no number",
            f"write distribution: {form.replacement}, whose bounds are the values themselves",
        )


def _check_range(name: str, form: Form, keys: Mapping[str, Any], fields: Fields) -> bool:
    """Check that the outermost values are finite, and that q is not finer than a float."""
    try:
        built = form.build(keys)
        ends = (float(built.decode(LEAST)), float(built.decode(MOST)))
        steps = max(map(abs, ends)) / keys["q"] if isinstance(built, Quantised) else 0.0
    except (OverflowError, ValueError):
        ends, steps = (math.inf, math.inf), 0.0
    if not all(map(math.isfinite, ends)):
        fields.findings.error(
            fields.path,
            f"{name} with these numbers gives values too large to be written",
            "make them smaller",
        )
        return False
    if steps > MOST_STEPS:
        fields.error(
            "q",
            f"q {show(keys['q'])} is finer than numbers of this size are",
            f"write a larger q, or distribution: {name.removeprefix('q_')}",
        )
        return False
    return True


def _warn_of_exponents(name: str, form: Form, keys: Mapping[str, Any], fields: Fields) -> None:
    built = form.build(keys)
    low, high = built.decode(LEAST), built.decode(MOST)
    fields.warn(
        "distribution",
        f"{name} is deprecated: min and max are exponents of e, so that the values lie "
        f"between {low:.3g} and {high:.3g}",
        f"write distribution: {form.replacement}, whose bounds are the values themselves",
    )


def _number_mend(key: str, name: str) -> str | None:
    if key == "q":
        rounded = f"q_{'uniform' if name == 'int_uniform' else name}"
        return f"write distribution: {rounded}" if rounded in FORMS else "remove it"
    if key in ("value", "values"):
        return f"remove distribution: {name}, or {key}"
    return None
