"""Texts as values: what command lines and sweeps write as text and mean as numbers or lists."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

NUMBER = re.compile(r"[-+]?(\d[\d_]*\.?[\d_]*|\.\d[\d_]*)([eE][-+]?\d+)?")
_WHOLE = re.compile(r"[-+]?\d[\d_]*")
WORDS: dict[str, Any] = {
    "None": None,
    "none": None,
    "null": None,
    "True": True,
    "true": True,
    "False": False,
    "false": False,
    "inf": float("inf"),
    "-inf": float("-inf"),
    "nan": float("nan"),
}


def parse(text: str) -> Any:
    """The value a text stands for: None, bools, numbers (1E-3 too), lists, dicts; or itself."""
    bare = text.strip()
    if bare in WORDS:
        return WORDS[bare]
    if (number := parse_number(bare)) is not None:
        return number
    if bare[:1] in ("[", "(", "{"):
        for read in (ast.literal_eval, json.loads):
            try:
                return read(bare)
            except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
                continue
    return text


def parse_number(text: str) -> int | float | None:
    """The number that a text is as a whole, else None."""
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if NUMBER.fullmatch(text) else None


def like(value: Any, old: Any) -> Any:
    """A new value in the type of the one it replaces, where both say the same."""
    if isinstance(value, str) and not isinstance(old, str):
        value = parse(value)
    if isinstance(value, bool) or isinstance(old, bool):
        return value
    if isinstance(old, float) and isinstance(value, int):
        return float(value)
    if isinstance(old, int) and isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(old, tuple) and isinstance(value, list):
        return tuple(value)
    return value
