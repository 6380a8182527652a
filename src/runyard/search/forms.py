"""The forms that a parameter can have in a sweep file: one table for reading and for editors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from runyard.search.distributions import Continuous, Distribution, IntUniform, Quantised
from runyard.search.laws import Beta, Law, LogNormal, LogUniform, Normal, Uniform

CONSTANT = "constant"
CATEGORICAL = "categorical"
WEIGHTED = "categorical_w_probabilities"


@dataclass(frozen=True)
class Form:
    """One distribution of numbers: its keys, and how they make a law."""

    build: Callable[[Mapping[str, Any]], Distribution]
    required: tuple[str, ...] = ()
    defaults: Mapping[str, float] = field(default_factory=dict)
    replacement: str | None = None  # the form that W&B recommends instead of a deprecated one
    is_positive: bool = False  # min must be above 0
    has_exponents: bool = False  # min and max are exponents of e

    @property
    def keys(self) -> tuple[str, ...]:
        return (*self.required, *self.defaults)


def _uniform(keys: Mapping[str, Any]) -> Law:
    return Uniform(keys["min"], keys["max"])


def _exponents(keys: Mapping[str, Any]) -> Law:
    return LogUniform(keys["min"], keys["max"])


def _log(keys: Mapping[str, Any]) -> Law:
    return LogUniform(math.log(keys["min"]), math.log(keys["max"]))


def _inverse_exponents(keys: Mapping[str, Any]) -> Law:
    return LogUniform(-keys["max"], -keys["min"])


def _normal(keys: Mapping[str, Any]) -> Law:
    return Normal(keys["mu"], keys["sigma"])


def _log_normal(keys: Mapping[str, Any]) -> Law:
    return LogNormal(keys["mu"], keys["sigma"])


def _beta(keys: Mapping[str, Any]) -> Law:
    return Beta(keys["a"], keys["b"])


def _plain(law: Callable[[Mapping[str, Any]], Law], **rest: Any) -> Form:
    return Form(lambda keys: Continuous(law(keys)), **rest)


def _rounded(law: Callable[[Mapping[str, Any]], Law], **rest: Any) -> Form:
    rest["defaults"] = {**rest.get("defaults", {}), "q": 1.0}
    return Form(lambda keys: Quantised(law(keys), keys["q"]), **rest)


_BOUNDS: dict[str, Any] = {"required": ("min", "max")}
_POSITIVE: dict[str, Any] = {**_BOUNDS, "is_positive": True}
_EXPONENTS: dict[str, Any] = {**_BOUNDS, "has_exponents": True}
_SPREAD: dict[str, Any] = {"defaults": {"mu": 0.0, "sigma": 1.0}}
_SHAPE: dict[str, Any] = {"defaults": {"a": 1.0, "b": 1.0}}

FORMS: Mapping[str, Form] = MappingProxyType(
    {
        "int_uniform": Form(lambda keys: IntUniform(keys["min"], keys["max"]), **_BOUNDS),
        "uniform": _plain(_uniform, **_BOUNDS),
        "q_uniform": _rounded(_uniform, **_BOUNDS),
        "log_uniform": _plain(_exponents, **_EXPONENTS, replacement="log_uniform_values"),
        "log_uniform_values": _plain(_log, **_POSITIVE),
        "q_log_uniform": _rounded(_exponents, **_EXPONENTS, replacement="q_log_uniform_values"),
        "q_log_uniform_values": _rounded(_log, **_POSITIVE),
        "inv_log_uniform": _plain(
            _inverse_exponents, **_EXPONENTS, replacement="inv_log_uniform_values"
        ),
        # 1/X with ln X uniform between -ln max and -ln min is log-uniform between min and max.
        "inv_log_uniform_values": _plain(_log, **_POSITIVE),
        "normal": _plain(_normal, **_SPREAD),
        "q_normal": _rounded(_normal, **_SPREAD),
        "log_normal": _plain(_log_normal, **_SPREAD),
        "q_log_normal": _rounded(_log_normal, **_SPREAD),
        "beta": _plain(_beta, **_SHAPE),
        "q_beta": _rounded(_beta, **_SHAPE),
    }
)

DISTRIBUTIONS = (CONSTANT, CATEGORICAL, WEIGHTED, *FORMS)
