"""What callers of runyard's own API give, checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from runyard.server.http.answers import HttpError
from runyard.server.store.names import BadName, check_project, check_run_id

# Far above anything sensible, and inside SQLite's integers.
_LARGEST = 2**53
_LONGEST_WAIT = 30.0


def number(text: str | None, name: str) -> int | None:
    """A whole number, zero or more, out of an address."""
    if text is None:
        return None
    try:
        value = int(text)
    except ValueError as error:
        raise HttpError(400, f"{name} is not a number: {text[:50]!r}") from error
    if not 0 <= value <= _LARGEST:
        raise HttpError(400, f"{name} is out of range: {text[:50]!r}")
    return value


def wait_seconds(text: str | None) -> float:
    """How long an answer may be held back until there is news."""
    try:
        value = float(text or 0)
    except ValueError as error:
        raise HttpError(400, f"wait is not a number: {str(text)[:50]!r}") from error
    # NaN is neither below nor above anything: it would wait for ever.
    return min(value, _LONGEST_WAIT) if value > 0 else 0.0


def field(given: Mapping[str, Any], name: str, kind: type[Any] | tuple[type[Any], ...]) -> Any:
    """A field of a body, of that kind."""
    value = given.get(name)
    if value is None:
        raise HttpError(400, f"{name} is missing")
    if not isinstance(value, kind) or isinstance(value, bool):
        raise HttpError(400, f"{name} is not of the right kind")
    if isinstance(value, int | float) and not (abs(value) <= _LARGEST and math.isfinite(value)):
        raise HttpError(400, f"{name} is out of range")
    return value


def new_run(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """The description of a run that is about to start."""
    try:
        check_run_id(field(given, "id", str))
        check_project(field(given, "project", str))
        if given.get("entity"):
            check_project(field(given, "entity", str))
    except BadName as error:
        raise HttpError(400, str(error)) from error
    texts(given, "command")
    if not given["command"]:
        raise HttpError(400, "command is missing")
    if given.get("tags") is not None:
        texts(given, "tags")
    for name in ("name", "notes", "group", "host", "folder"):
        if given.get(name) is not None:
            field(given, name, str)
    return given


def texts(given: Mapping[str, Any], name: str) -> list[str]:
    values: list[str] = field(given, name, list)
    if not all(isinstance(item, str) for item in values):
        raise HttpError(400, f"{name} is not a list of texts")
    return values
