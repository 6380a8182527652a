"""Whether two values of a parameter are the same: matches a run's config with a sweep."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

# Between the groups of a nested parameter's name; no parameter's own name may hold it.
SEPARATOR = "/"


def identity(value: Any) -> str:
    """Equal for equal values: 64 and 64.0 are, True and 1 are not, nor "1" and 1."""
    return json.dumps(_plain(value), sort_keys=True, ensure_ascii=False, default=str)


def known_keys(values: Iterable[Any]) -> frozenset[str] | None:
    """The keys that mappings among `values` have; None if no value is a mapping."""
    keys: set[str] = set()
    for value in values:
        if isinstance(value, Mapping):
            keys.update(str(key) for key in value)
    return frozenset(keys) or None


def without_extra_keys(value: Any, known: frozenset[str] | None) -> Any:
    """A mapping without the keys that a program or a client added later."""
    if known is None or not isinstance(value, Mapping):
        return value
    return {key: item for key, item in value.items() if str(key) in known}


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
