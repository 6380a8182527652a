"""What runs said of their metrics by `define_metric`: the step, the summary, the goal, hidden.

The client writes it into the config, under `_wandb`, as a list of records whose fields have the
numbers of its protocol: 1 the name, 2 a pattern of names, 5 the place of the step's record in the
list (from 1 on), 6 options (2: hidden), 7 the summary's kinds, 8 the goal.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from typing import Any

_NAME, _PATTERN, _STEP, _OPTIONS, _SUMMARY, _GOAL = "1", "2", "5", "6", "7", "8"
_HIDDEN = 2
_GOALS = {1: "minimize", 2: "maximize"}
_SUMMARIES = {1: "min", 2: "max", 3: "mean", 4: "best", 5: "last", 6: "none", 7: "copy", 8: "first"}


def read_defined(config: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """By name or pattern; what is not as the client writes it is left out."""
    own = config.get("_wandb")
    own = own.get("value", own) if isinstance(own, dict) else None
    records = own.get("m") if isinstance(own, dict) else None
    records = [record for record in records or () if isinstance(record, dict)]
    defined = {}
    for record in records:
        name = record.get(_NAME) or record.get(_PATTERN)
        if not isinstance(name, str):
            continue
        place = record.get(_STEP)
        step = records[place - 1].get(_NAME) if _is_place(place, records) else None
        goal = record.get(_GOAL)
        # The client escapes dots in names, which for it stand for nesting.
        defined[_plain(name)] = {
            "step": _plain(step) if isinstance(step, str) else None,
            "goal": _GOALS.get(goal) if isinstance(goal, int) else None,
            "summary": [_SUMMARIES[kind] for kind in _numbers(record, _SUMMARY, _SUMMARIES)],
            "hidden": _HIDDEN in _numbers(record, _OPTIONS, (_HIDDEN,)),
        }
    return defined


def of_metrics(
    defined: Mapping[str, Mapping[str, Any]], metrics: Iterable[str]
) -> dict[str, Mapping[str, Any]]:
    """For each metric what holds of it: its own record, or the last pattern that it matches."""
    patterns = [name for name in defined if "*" in name]
    definitions = {}
    for metric in metrics:
        matching = [name for name in patterns if fnmatch.fnmatchcase(metric, name)]
        name = metric if metric in defined else matching[-1] if matching else None
        if name is not None:
            definitions[metric] = defined[name]
    return definitions


def _is_place(place: Any, records: list[Any]) -> bool:
    return isinstance(place, int) and 0 < place <= len(records)


def _numbers(record: Mapping[str, Any], field: str, known: Iterable[int]) -> list[int]:
    listed = record.get(field)
    return [number for number in known if isinstance(listed, list) and number in listed]


def _plain(name: str) -> str:
    return name.replace("\\.", ".")
