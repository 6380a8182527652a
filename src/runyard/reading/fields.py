"""Typed reading of a mapping: each question answers a value, or notes a problem."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from runyard.reading.problems import Findings, Path, choose, closest, kind_of, listed, show

# Nobody reads more of them, and to find the word that was meant takes time.
_MOST_UNKNOWN = 20


class Fields:
    """One mapping of the document, where it stands, and the findings to add to."""

    def __init__(self, data: Mapping[Any, Any], path: Path, findings: Findings) -> None:
        self.data = data
        self.path = path
        self.findings = findings

    def __contains__(self, key: str) -> bool:
        return key in self.data

    def at(self, key: str | int) -> Path:
        return (*self.path, key)

    def error(self, key: str | int, message: str, mend: str) -> None:
        self.findings.error(self.at(key), message, mend)

    def warn(self, key: str | int, message: str, mend: str) -> None:
        self.findings.warn(self.at(key), message, mend)

    def allow(self, words: Iterable[str], mend: Callable[[str], str | None] | None = None) -> None:
        """Reports every key but these. `mend` may know better what a key was meant to be."""
        words = tuple(words)
        unknown = [key for key in self.data if key not in words]
        for key in unknown[:_MOST_UNKNOWN]:
            better = mend(str(key)) if mend else None
            near = closest(key, words)
            guess = f"did you mean {near}?" if near else f"remove it; allowed: {listed(words)}"
            self.error(key, f"{show(key)} is not a key here", better or guess)
        if more := unknown[_MOST_UNKNOWN:]:
            self.error(
                more[0],
                f"{len(more)} more are no keys here",
                f"remove them; allowed: {listed(words)}",
            )

    def text(self, key: str, required: bool = False) -> str | None:
        """Some text. Left empty it is as good as not written, unless it is required."""
        value = self._given(key) if required else self.data.get(key)
        if isinstance(value, str) and value.strip():
            return value
        if isinstance(value, str) and required:
            self._wrong(key, "text is wanted", "write something there")
        elif not isinstance(value, str) and value is not None:
            self._wrong(key, "text is wanted", f"write '{show(value)}' in quotes, if you mean it")
        return None

    def word(self, key: str, words: Sequence[str]) -> str | None:
        value = self._given(key)
        if isinstance(value, str) and value in words:
            return value
        if value is not None:
            self.error(key, f"{key} is {kind_of(value)}", choose(value, words))
        return None

    def flag(self, key: str, default: bool) -> bool:
        value = self._given(key)
        if isinstance(value, bool):
            return value
        if value is not None:
            self._wrong(key, "true or false is wanted", "write true or false, without quotes")
        return default

    def integer(self, key: str, least: int, default: int | None = None) -> int | None:
        value = self._given(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int):
            mend = f"write {int(value)}" if _is_whole(value) else "write a whole number"
            if isinstance(value, str) and value.strip().isdigit():
                mend = f"write {value.strip()} without quotes"
            self._wrong(key, "a whole number is wanted", mend)
        elif value < least:
            mend = f"write {least} or more, or remove it"
            self._wrong(key, f"it must be at least {least}", mend)
        else:
            return value
        return None

    def number(self, key: str) -> int | float | None:
        """A finite number, int or float as it is written."""
        value = self._given(key)
        if isinstance(value, str) and _reads_as_number(value):
            self._wrong(key, "a number is wanted", f"write {value} without quotes")
        elif isinstance(value, float) and not math.isfinite(value):
            self._wrong(key, "it must be finite", "write a number with digits")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            return value
        elif value is not None:
            self._wrong(key, "a number is wanted", "write a number")
        return None

    def mapping(self, key: str, mend: str) -> Fields | None:
        value = self._given(key)
        if isinstance(value, Mapping):
            return Fields(value, self.at(key), self.findings)
        if value is not None:
            self._wrong(key, "a mapping is wanted", mend)
        return None

    def items(self, key: str, mend: str) -> list[Any] | None:
        value = self._given(key)
        if isinstance(value, list | tuple):
            return list(value)
        if value is not None:
            self._wrong(key, "a list is wanted", mend)
        return None

    def _given(self, key: str) -> Any:
        """The value; one that is written and left empty is a problem of its own."""
        if key in self.data and self.data[key] is None:
            self.error(key, f"{key} is empty", "write a value, or remove the key")
        return self.data.get(key)

    def _wrong(self, key: str, wanted: str, mend: str) -> None:
        self.error(key, f"{key} is {kind_of(self.data[key])}; {wanted}", mend)


def _is_whole(value: Any) -> bool:
    return isinstance(value, float) and value.is_integer()


def _reads_as_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
