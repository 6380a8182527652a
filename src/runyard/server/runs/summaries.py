"""Summaries of several writers, or of several segments of a run, as one."""

from __future__ import annotations

import json
from typing import Any


def merge_summaries(stored: str, said: str, *, shared: bool) -> str:
    """Key by key: of writers at once the one that speaks wins, of segments the later one."""
    old, new = json.loads(stored), json.loads(said)
    if shared or not old or _when(new) >= _when(old):
        return json.dumps({**old, **new})
    return json.dumps({**new, **old})


def _when(summary: dict[str, Any]) -> tuple[float, float]:
    return _number(summary.get("_step")), _number(summary.get("_timestamp"))


def _number(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number else -1.0
