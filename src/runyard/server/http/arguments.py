"""What callers of runyard's own API send, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request

from runyard.server.http.answers import HttpError, read_json, read_texts

Shape = TypeVar("Shape")

# Far above anything sensible, and inside SQLite's integers.
_LARGEST = 2**53
_LONGEST_WAIT = 30.0


def number(request: Request, name: str) -> int | None:
    """A whole number, zero or more, out of the address."""
    return whole_number(request.query_params.get(name), name)


def whole_number(text: str | None, name: str) -> int | None:
    if text is None:
        return None
    try:
        value = int(text)
    except ValueError as error:
        raise HttpError(400, f"{name} is not a number: {text[:50]!r}") from error
    if not 0 <= value <= _LARGEST:
        raise HttpError(400, f"{name} is out of range: {text[:50]!r}")
    return value


def wait_seconds(text: object) -> float:
    """How long an answer may be held back until there is news."""
    try:
        value = float(text or 0)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise HttpError(400, f"wait is not a number: {str(text)[:50]!r}") from error
    # NaN is neither below nor above anything: it would wait for ever.
    return min(value, _LONGEST_WAIT) if value > 0 else 0.0


async def read(request: Request, shape: type[Shape]) -> Shape:
    """The body, with texts that SQLite takes; null is as good as left out."""
    return checked(await read_texts(request), shape)


async def read_as_sent(request: Request, shape: type[Shape]) -> Shape:
    """The body, with its texts as they came."""
    return checked(await read_json(request), shape)


def checked(content: Mapping[str, Any], shape: type[Shape], *, null: bool = False) -> Shape:
    """The fields of a shape, as declared; others are left out. `null`: whether null says something.

    Clients send null for what they do not say, and older or newer ones fields that are unknown.
    """
    if not null:
        content = {name: value for name, value in content.items() if value is not None}
    try:
        fields = msgspec.convert(content, shape)
    except msgspec.ValidationError as error:
        raise HttpError(400, _refusal(str(error))) from error
    for name, value in (fields if isinstance(fields, dict) else vars(fields)).items():
        # NaN is not in any range.
        if isinstance(value, int | float) and not abs(value) <= _LARGEST:
            raise HttpError(400, f"{name} is out of range")
    return fields


def _refusal(text: str) -> str:
    """msgspec's words, with the field first: `pid: expected int, got str`."""
    reason, _, place = text.replace("`", "").partition(" - at $.")
    if place:
        return f"{place}: {reason[0].lower()}{reason[1:]}"
    return f"{reason.removeprefix('Object missing required field ')} is missing"
