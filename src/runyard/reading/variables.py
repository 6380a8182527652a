"""Expands `$NAME`, `${NAME}`, `${NAME:-otherwise}` in a text, and `~` at its start."""

from __future__ import annotations

import re
from collections.abc import Mapping

_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^{}]*))?\}|\$([A-Za-z_]\w*)")


class UnsetVariable(Exception):
    """A variable in a text is not set."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def expand(text: str, environ: Mapping[str, str]) -> str:
    """The text with its variables expanded. The value of a variable is not expanded again."""
    values: list[str] = []

    def value(match: re.Match[str]) -> str:
        name, otherwise = match[1] or match[3], match[2]
        if environ.get(name) or (name in environ and otherwise is None):
            values.append(environ[name])
            return f"\0{len(values) - 1}\0"
        # Reported at the end: the variable may be in a default that is not used.
        return f"\1{name}\1" if otherwise is None else otherwise

    # The innermost variable first: ${SCRATCH:-/shared/${USER}}.
    filled, before = _VARIABLE.sub(value, text), text
    while filled != before:
        filled, before = _VARIABLE.sub(value, filled), filled
    if filled == "~" or filled.startswith("~/"):
        if not environ.get("HOME"):
            raise UnsetVariable("HOME")
        values.append(environ["HOME"])
        filled = f"\0{len(values) - 1}\0{filled[1:]}"
    missing = re.search("\1(\\w+)\1", filled)
    if missing:
        raise UnsetVariable(missing[1])
    return re.sub("\0(\\d+)\0", lambda match: values[int(match[1])], filled)
