"""The rules of early stopping, as a sweep file states them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from runyard.reading.fields import Fields
from runyard.reading.problems import choose, kind_of, show

HYPERBAND_KEYS = ("type", "min_iter", "max_iter", "s", "eta", "strict")
ASHA_KEYS = ("type", "min_iter", "max_iter", "eta", "form", "step")
ASHA_FORMS = ("stopping", "promotion")


@dataclass(frozen=True)
class Hyperband:
    """W&B's rule. Bands are max_iter/eta, max_iter/eta^2, … (s of them), or min_iter, min_iter*eta,
    …; with both, max_iter wins. `strict`: judged by the value at the band, not the best so far."""

    min_iter: int | None = None
    max_iter: int | None = None
    s: int | None = None
    eta: float = 3.0
    strict: bool = True


@dataclass(frozen=True)
class Asha:
    """Asynchronous successive halving, with rungs at min_iter, min_iter*eta, … up to max_iter.

    `stopping` ends trials that are not among the best 1/eta at a rung; `promotion` pauses every
    trial at each rung and continues the best. `step` names a logged number that counts iterations;
    without it, the logged values of the metric are counted.
    """

    min_iter: int = 1
    max_iter: int | None = None
    eta: float = 3.0
    form: Literal["stopping", "promotion"] = "stopping"
    step: str | None = None


EarlyTerminate: TypeAlias = Hyperband | Asha


def read_early_terminate(fields: Fields, types: tuple[str, ...]) -> EarlyTerminate | None:
    """The rule in a mapping; `types` lists the rules that are allowed there."""
    if "type" not in fields:
        fields.findings.error(fields.path, "early_terminate has no type", f"add type: {types[0]}")
        return None
    kind: Any = fields.data["type"]
    if kind not in types:
        mend = choose(kind, types)
        if kind == "asha":
            mend = "move it under runyard:, where W&B does not look: runyard: {early_terminate: …}"
        fields.error("type", f"early_terminate's type is {kind_of(kind)}", mend)
        return None
    return _read_hyperband(fields) if kind == "hyperband" else _read_asha(fields)


def _read_hyperband(fields: Fields) -> Hyperband | None:
    fields.allow(HYPERBAND_KEYS)
    minimum = fields.integer("min_iter", least=1)
    maximum = fields.integer("max_iter", least=1)
    s = fields.integer("s", least=1)
    eta = _read_eta(fields)
    strict = fields.flag("strict", default=True)
    if "min_iter" not in fields and not ("max_iter" in fields and "s" in fields):
        missing = {"max_iter": "s", "s": "max_iter"}
        mend = next((f"add {missing[key]}" for key in missing if key in fields), None)
        fields.findings.error(
            fields.path,
            "hyperband needs min_iter, or max_iter with s",
            mend or "add min_iter: 3, for example",
        )
        return None
    if "max_iter" in fields and "s" not in fields:
        fields.error(
            "max_iter", "max_iter needs s, and wins over min_iter", "add s, or remove max_iter"
        )
        return None
    if maximum is not None and eta is not None and maximum / eta < 1:
        fields.error(
            "max_iter",
            f"max_iter {maximum} leaves no band: the first would be {maximum}/{eta:g}",
            f"write at least {int(-(-eta // 1))}",
        )
        return None
    return Hyperband(minimum, maximum, s, eta or 3.0, strict)


def _read_asha(fields: Fields) -> Asha | None:
    fields.allow(ASHA_KEYS)
    minimum = fields.integer("min_iter", least=1, default=1)
    maximum = fields.integer("max_iter", least=1)
    eta = _read_eta(fields)
    form = fields.word("form", ASHA_FORMS) or "stopping"
    step = fields.text("step")
    if minimum is not None and maximum is not None and minimum >= maximum:
        fields.error(
            "min_iter",
            f"min_iter {show(minimum)} leaves no rung below max_iter {show(maximum)}",
            "write a min_iter below max_iter",
        )
        return None
    return Asha(
        minimum or 1, maximum, eta or 3.0, cast("Literal['stopping', 'promotion']", form), step
    )


def _read_eta(fields: Fields) -> float | None:
    eta = fields.number("eta") if "eta" in fields else 3.0
    if eta is not None and eta <= 1:
        fields.error("eta", f"eta is {show(eta)}", "write a number above 1; 3 is usual")
        return None
    return eta
