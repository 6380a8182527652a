"""Typed reading of a mapping: each method returns a value, or notes a problem."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from runyard.reading.kinds import Flag, Kind, Unfit, Whole
from runyard.reading.problems import Findings, Path, choose, closest, kind_of, listed, show

# Nobody reads more of them, and finding the nearest word takes time.
_MOST_UNKNOWN = 20


class Fields:
    """One mapping of the document, its place, and the findings to add to."""

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
        """Report every key except these. `mend` may know better what a key should be."""
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
        """Some text. An empty one counts as not written, unless it is required."""
        value = self._written(key) if required else self.data.get(key)
        if isinstance(value, str) and value.strip():
            return value
        if isinstance(value, str) and required:
            self._wrong(key, "text is wanted", "write something there")
        elif not isinstance(value, str) and value is not None:
            self._wrong(key, "text is wanted", f"write '{show(value)}' in quotes, if you mean it")
        return None

    def word(self, key: str, words: Sequence[str]) -> str | None:
        value = self._written(key)
        if isinstance(value, str) and value in words:
            return value
        if value is not None:
            self.error(key, f"{key} is {kind_of(value)}", choose(value, words))
        return None

    def flag(self, key: str, default: bool) -> bool:
        value = self._read(key, Flag())
        return default if value is None else bool(value)

    def integer(self, key: str, least: int, default: int | None = None) -> int | None:
        value: int | None = self._read(key, Whole(least, can_be_left_out=True))
        return default if self.data.get(key) is None else value

    def number(self, key: str) -> int | float | None:
        """A finite number, int or float as in the file."""
        value = self._written(key)
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
        value = self._written(key)
        if isinstance(value, Mapping):
            return Fields(value, self.at(key), self.findings)
        if value is not None:
            self._wrong(key, "a mapping is wanted", mend)
        return None

    def items(self, key: str, mend: str) -> list[Any] | None:
        value = self._written(key)
        if isinstance(value, list | tuple):
            return list(value)
        if value is not None:
            self._wrong(key, "a list is wanted", mend)
        return None

    def _read(self, key: str, kind: Kind) -> Any:
        value = self._written(key)
        if value is None:
            return None
        try:
            return kind.read(value)
        except Unfit as error:
            self._wrong(key, error.wanted, error.mend)
            return None

    def _written(self, key: str) -> Any:
        """The value; a key without a value is a problem."""
        if key in self.data and self.data[key] is None:
            self.error(key, f"{key} is empty", "write a value, or remove the key")
        return self.data.get(key)

    def _wrong(self, key: str, wanted: str, mend: str) -> None:
        self.error(key, f"{key} is {kind_of(self.data[key])}; {wanted}", mend)


def _reads_as_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
