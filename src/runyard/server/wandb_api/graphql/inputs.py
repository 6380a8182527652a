"""Arguments of GraphQL fields, checked. What is not as it should be is refused, never retried."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from runyard.server.store.database import LARGEST_KEY
from runyard.server.wandb_api.graphql.source import Refusal


def as_text(given: Mapping[str, Any], name: str) -> str | None:
    value = given.get(name)
    if value is not None and not isinstance(value, str):
        raise Refusal(f"{name} is not a text")
    return value


def as_list(given: Mapping[str, Any], name: str) -> list[str]:
    """A list of texts. Clients send a single value where a list has one."""
    value = given.get(name)
    values = value if isinstance(value, list) else [] if value is None else [value]
    if not all(isinstance(item, str) for item in values):
        raise Refusal(f"{name} is not a list of texts")
    return values


def as_object(given: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = given.get(name)
    if value is not None and not isinstance(value, dict):
        raise Refusal(f"{name} is not an object")
    return value or {}


def as_objects(given: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    value = given.get(name)
    values = value if isinstance(value, list) else [] if value is None else [value]
    if not all(isinstance(item, dict) for item in values):
        raise Refusal(f"{name} is not a list of objects")
    return values


def as_whole(given: Mapping[str, Any], name: str) -> int | None:
    """A whole number that SQLite can hold."""
    value = given.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > LARGEST_KEY:
        raise Refusal(f"{name} is not a whole number")
    return value


def as_count(given: Mapping[str, Any], name: str, default: int, most: int) -> int:
    """How many of something: clients are given no more than `most` at once."""
    value = given.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise Refusal(f"{name} is not a number of things")
    return min(value, most)


def as_json(given: Mapping[str, Any], name: str) -> str | None:
    """A JSON object in a text, as it was sent."""
    text = as_text(given, name)
    if text is not None:
        try:
            if not isinstance(json.loads(text), dict):
                raise ValueError("it is not an object")
        except (ValueError, RecursionError) as error:
            raise Refusal(f"{name} is not JSON: {error}") from error
    return text
