"""What is wrong with a document, where, and what to write instead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

Path: TypeAlias = tuple[str | int, ...]

# The most that a message quotes of a value: enough to recognise it.
SHOWN = 60


@dataclass(frozen=True)
class Problem:
    """One mistake in a document, or (`is_error` False) one thing to know about it."""

    path: Path
    message: str
    mend: str
    is_error: bool = True

    def __str__(self) -> str:
        where = ".".join(_in_one_line(str(step)) for step in self.path)
        return f"{where}: {self.message}; {self.mend}" if where else f"{self.message}; {self.mend}"


def _in_one_line(name: str) -> str:
    return name if name.isprintable() else repr(name)


class Findings:
    """The problems found so far. A check adds to it and continues."""

    def __init__(self) -> None:
        self._found: list[Problem] = []

    def __iter__(self) -> Iterator[Problem]:
        return iter(self._found)

    @property
    def has_errors(self) -> bool:
        return any(problem.is_error for problem in self._found)

    def error(self, path: Path, message: str, mend: str) -> None:
        self._found.append(Problem(path, message, mend))

    def warn(self, path: Path, message: str, mend: str) -> None:
        self._found.append(Problem(path, message, mend, is_error=False))


_LONGEST_NUMBER = 10_000  # in bits


def show(value: Any) -> str:
    """A value as its author would write it, shortened if it is long."""
    if isinstance(value, str):
        text = f'"{value}"'
    elif value is None:
        text = "null"
    elif isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, int) and value.bit_length() > _LONGEST_NUMBER:
        text = "a number of very many digits"  # Python converts at most 4,300 digits.
    else:
        text = repr(value)
    text = "".join(letter if letter.isprintable() else " " for letter in text[: 4 * SHOWN])
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def kind_of(value: Any) -> str:
    """What a value is, in words for a message: `the text "0.1"`, `a list`."""
    if isinstance(value, str):
        return f"the text {show(value)}"
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return f"the truth value {show(value)}"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    return f"the number {show(value)}"


# More than in any list of runyard.
_MOST_LISTED = 60


def listed(words: Iterable[str], last: str = "or") -> str:
    """`a, b or c`; empty if there is none. For very many: the first ones, and how many more."""
    every = tuple(words) or ("",)
    if len(every) > _MOST_LISTED:
        every = (*every[: _MOST_LISTED - 1], f"{len(every) - _MOST_LISTED + 1:,} more")
    *rest, end = every
    return f"{', '.join(rest)} {last} {end}" if rest else end


def closest(word: Any, words: Iterable[str]) -> str | None:
    """The word that was probably meant, if there is a similar one."""
    written, words = str(word)[:SHOWN].lower(), list(words)
    longer = [known for known in words if len(written) > 2 and known.startswith(written)]
    if len(longer) == 1:
        return longer[0]
    return nearest(written, words)


def nearest(word: str, words: Iterable[str]) -> str | None:
    """The most similar word, if one is similar."""
    import difflib  # Imported late: it would slow down every command, and is seldom needed.

    matches = difflib.get_close_matches(word, list(words), n=1, cutoff=0.6)
    return matches[0] if matches else None


def choose(word: Any, words: Iterable[str]) -> str:
    """The mend for an unknown word: the nearest one, or all of them."""
    words = list(words)
    near = closest(word, words)
    return f"did you mean {near}?" if near else f"write {listed(words)}"
