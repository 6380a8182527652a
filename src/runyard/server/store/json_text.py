"""JSON as text, quickly. What the quick library would change or refuse, Python's own does."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import orjson


def dump(value: Any) -> str:
    """Text that `parse` makes the same value of, NaN and the infinities included."""
    try:
        text = orjson.dumps(value)
    except TypeError:  # Whole numbers of more than 64 bits, half surrogates.
        return json.dumps(value)
    # It writes null for NaN; whether it did, only the slow one knows.
    return json.dumps(value) if b"null" in text else text.decode()


def is_odd(text: str) -> bool:
    """Whether it may hold what not every reader takes: NaN or an infinity."""
    return "NaN" in text or "Infinity" in text


def parse(text: str | bytes, *, odd: Callable[[Any], Any] | None = None) -> Any:
    """What stands in a text; `odd` is called on what the quick library refused."""
    try:
        return orjson.loads(text)
    except ValueError:  # NaN, half surrogates.
        value = json.loads(text)
        return value if odd is None else odd(value)
