"""What attempts use of their node, as agents tell it: checked, stored as JSON, added up."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

# Bytes, seconds, shares of one, rates.
NUMBERS = (
    "memory_peak",
    "cpu_seconds",
    "read_bytes",
    "written_bytes",
    "vram_peak",
    "vram_total",
    "gpu_use",
    "steps_per_second",
)
_LARGEST = 2.0**60
_LONGEST_NAME = 500


def read_usage(given: object) -> str | None:
    """As it is stored; what is none of it is passed over, since newer agents may tell more."""
    if not isinstance(given, dict):
        return None
    found: dict[str, Any] = {name: given[name] for name in NUMBERS if _is_amount(given.get(name))}
    gpu = given.get("gpu")
    if isinstance(gpu, str) and gpu.isprintable():
        found["gpu"] = gpu[:_LONGEST_NAME]
    return json.dumps(found) if found else None


def usage_json(stored: str | None) -> dict[str, Any] | None:
    return None if stored is None else json.loads(stored)


def together(stored: Sequence[str | None]) -> dict[str, Any] | None:
    """Of attempts that run side by side: what they use in all, and how busy their GPUs are."""
    found = [json.loads(one) for one in stored if one is not None]
    if not found:
        return None
    summed = ("memory_peak", "cpu_seconds", "vram_peak", "steps_per_second")
    total: dict[str, Any] = {
        name: sum(one[name] for one in found if name in one)
        for name in summed
        if any(name in one for one in found)
    }
    used = [one["gpu_use"] for one in found if "gpu_use" in one]
    if used:
        total["gpu_use"] = sum(used) / len(used)
    return total


def _is_amount(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value) and 0 <= value <= _LARGEST  # type: ignore[arg-type, operator]
