"""What a controller on somebody's machine (`wandb.controller()`) asks for: pure reading of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Asked:
    """Settings to be run, each under the controller's own mark; runs to be stopped."""

    settings: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    stops: tuple[str, ...] = ()
    # It has nothing more to ask for.
    is_done: bool = False


def read_controller(text: str | None) -> Asked:
    """Reads the JSON that a controller keeps with its sweep; what is odd is passed over."""
    try:
        content = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return Asked()
    if not isinstance(content, dict):
        return Asked()
    wanted, is_done = [], False
    for entry in _list(content.get("schedule")):
        data = entry.get("data") if isinstance(entry, dict) else None
        if not isinstance(data, dict) or not isinstance(entry.get("id"), str):
            continue
        args = data.get("args")
        if args is None:
            is_done = True
        elif isinstance(args, dict):
            wanted.append((entry["id"], {name: plain_value(item) for name, item in args.items()}))
    stops = tuple(run for run in _list(content.get("earlystop")) if isinstance(run, str))
    return Asked(tuple(wanted), stops, is_done)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def plain_value(item: Any) -> Any:
    """What stands in an entry of a run's config, which clients write as {"value": ...}."""
    return item["value"] if isinstance(item, dict) and "value" in item else item
