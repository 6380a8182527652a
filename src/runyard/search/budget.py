"""What a sweep may use: `200 gpu-hours`, or `12 hours` of programs."""

from __future__ import annotations

import re
from dataclasses import dataclass

# As it is written, and as people read it.
UNITS = {"gpu-hours": "GPU-hours", "hours": "hours"}
MEND = "write 200 gpu-hours, or 12 hours (the time of all trials together)"
PATTERN = r"^\s*[0-9]{1,12}(\.[0-9]+)?\s*([gG][pP][uU][ -]?)?([hH]|[hH][oO][uU][rR][sS]?)\s*$"


class BadBudget(ValueError):
    """It is no budget; the text says why, `mend` what to write."""

    def __init__(self, message: str, mend: str = MEND) -> None:
        super().__init__(message)
        self.mend = mend


@dataclass(frozen=True)
class Budget:
    hours: float
    unit: str

    @property
    def counts_gpus(self) -> bool:
        return self.unit == "gpu-hours"

    def __str__(self) -> str:
        """As a file has it; `parse_budget` reads it."""
        return f"{plain(self.hours)} {self.unit}"

    @property
    def words(self) -> str:
        return f"{plain(self.hours)} {UNITS[self.unit]}"


def plain(hours: float) -> str:
    """Without an exponent: 200, 1.5, 0.001."""
    return f"{hours:.6f}".rstrip("0").rstrip(".")


def amount(hours: float) -> str:
    """198.7, 12.3, 0.251."""
    return f"{hours:.1f}" if hours >= 10 or not hours else f"{hours:.3g}"


def tell_use(limit: float, unit: str, used: float, planned: float) -> str:
    """How much of a budget is used, and what open trials will use of it."""
    more = ""
    if planned - used >= 0.01 * limit:
        more = f", {amount(planned)} when what has begun has ended"
    return f"{amount(used)} of {plain(limit)} {UNITS[unit]} used{more}"


def parse_budget(value: object) -> Budget:
    """Raises `BadBudget`."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        unit = f"write {value} gpu-hours, or {value} hours (the time of all trials together)"
        raise BadBudget(f"a budget of {value} has no unit", unit)
    if not isinstance(value, str):
        raise BadBudget("a budget is a number and its unit")
    if re.fullmatch(r"\s*[0-9.]+\s*(cpu|core|node)s?[ -]?(h|hours?)\s*", value, re.IGNORECASE):
        raise BadBudget(f"{value.strip()}: runyard counts the time of trials and of their GPUs, "
                        "not of CPUs or nodes")  # fmt: skip
    if not re.fullmatch(PATTERN, value):
        raise BadBudget(f"{value.strip()[:50]!r} is no budget")
    number = re.match(r"\s*([0-9.]+)", value)
    hours = round(float(number.group(1)), 6) if number else 0.0
    if not hours:
        raise BadBudget("a budget is more than 0")
    return Budget(hours, "gpu-hours" if "gpu" in value.lower() else "hours")
