"""Brace expansion as bash has it, without a shell: `--lr {0.1,0.01} --seed {1..5}`.

Beyond bash's, a sequence may be of fractions, `{0.1..0.5..0.1}`, and geometric: `{1e-4..1..x10}`.
The leftmost braces vary slowest. In quotes, behind a backslash and in `${...}` a brace is text,
and so are braces with neither a comma nor two dots in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from itertools import product

MOST_LINES = 100_000
# Of a step: ends that a division misses by its last digit belong to the sequence.
_ALMOST = Decimal("1e-9")

_RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)(?:\.\.(-?\d+))?")
# What bash takes for text: the step of fractions, or the factor of a geometric sequence.
_NUMBER = r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_SEQUENCE = re.compile(rf"({_NUMBER})\.\.({_NUMBER})\.\.(x?)({_NUMBER})")
_LETTERS = re.compile(r"([A-Za-z])\.\.([A-Za-z])(?:\.\.(-?\d+))?")


class TooMany(ValueError):
    """More lines than anybody wants; said before they are made."""


def expand(text: str) -> list[str]:
    """Every line that a text with braces stands for."""
    return ["".join(parts) for parts in product(*_parts(text))]


def read_seeds(text: str) -> tuple[int, ...]:
    """A number of seeds, or the seeds themselves; ValueError otherwise."""
    from runyard.search.options import MOST_SEEDS

    try:
        words = range(int(text)) if text.isdecimal() else expand(f"{{{text}}}")
        numbers = tuple(map(int, words)) if len(words) <= MOST_SEEDS else ()
    except (ValueError, OverflowError, TooMany):
        numbers = ()
    if not numbers or len(set(numbers)) < len(numbers):
        raise ValueError(f"{text!r} is no number of seeds, nor seeds: 1,2,3 or 1..5")
    return numbers


def _parts(text: str) -> list[list[str]]:
    """A text as pieces, each with what can stand there."""
    parts: list[list[str]] = []
    begun = place = 0
    while place < len(text):
        end = _skip(text, place)
        if end == place and text[place] == "{":
            close = _closing(text, place)
            choices = None if close is None else _choices(text[place + 1 : close])
            if close is not None and choices is not None:
                parts += [[text[begun:place]], choices]
                begun = place = close + 1
                continue
        place = max(end, place + 1)
    parts.append([text[begun:]])
    size = 1
    for part in parts:
        size *= len(part)
    if size > MOST_LINES:
        raise TooMany(f"{size:,} lines, and at most {MOST_LINES:,} are made at once")
    return parts


def _skip(text: str, place: int) -> int:
    """Behind what is taken as it stands: an escape, a quoted part, a variable; else `place`."""
    letter = text[place]
    if letter == "\\":
        return place + 2
    if letter == "'":
        return _behind(text, "'", place + 1)
    if letter == '"':
        place += 1
        while place < len(text) and text[place] != '"':
            place += 2 if text[place] == "\\" else 1
        return place + 1
    if text.startswith("${", place):
        return _behind(text, "}", place + 2)
    return place


def _behind(text: str, mark: str, place: int) -> int:
    end = text.find(mark, place)
    return len(text) if end < 0 else end + 1


def _closing(text: str, place: int) -> int | None:
    """The brace that closes the one at `place`."""
    depth = 0
    while place < len(text):
        end = _skip(text, place)
        if end > place:
            place = end
            continue
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return place
        place += 1
    return None


def _choices(inner: str) -> list[str] | None:
    """What braces stand for; None where they are text."""
    pieces = list(_split(inner))
    if len(pieces) > 1:
        return [line for piece in pieces for line in expand(piece)]
    numbers = _RANGE.fullmatch(inner)
    if numbers is not None:
        return _numbers(numbers)
    sequence = _SEQUENCE.fullmatch(inner)
    if sequence is not None:
        return _sequence(sequence)
    letters = _LETTERS.fullmatch(inner)
    if letters is not None:
        codes = _steps(ord(letters[1]), ord(letters[2]), int(letters[3] or 1))
        return [chr(code) for code in codes]
    return None


def _split(inner: str) -> Iterator[str]:
    """At the commas that stand in no inner braces."""
    begun = place = depth = 0
    while place < len(inner):
        end = _skip(inner, place)
        if end > place:
            place = end
            continue
        depth += {"{": 1, "}": -1}.get(inner[place], 0)
        if inner[place] == "," and depth == 0:
            yield inner[begun:place]
            begun = place + 1
        place += 1
    yield inner[begun:]


def _numbers(match: re.Match[str]) -> list[str]:
    ends = match[1], match[2]
    padded = any(len(end.lstrip("-")) > 1 and end.lstrip("-").startswith("0") for end in ends)
    width = max(map(len, ends)) if padded else 0
    values = _steps(int(ends[0]), int(ends[1]), int(match[3] or 1))
    return [f"{value:0{width}d}" for value in values]


def _sequence(match: re.Match[str]) -> list[str] | None:
    """Fractions, or numbers that grow or fall by a factor; None where that leads nowhere."""
    first, last, step = Decimal(match[1]), Decimal(match[2]), abs(Decimal(match[4]))
    if match[3]:
        if step <= 1 or first * last <= 0:
            return None
        factor = step if abs(last) > abs(first) else 1 / step
        count = int(abs((last / first).ln() / step.ln()) + _ALMOST) + 1
        values = (first * factor**index for index in range(count))
    else:
        if not step:
            return None
        count = int(abs(last - first) / step + _ALMOST) + 1
        values = (first + index * step.copy_sign(last - first) for index in range(count))
    if count > MOST_LINES:
        raise TooMany(f"{count:,} values, and at most {MOST_LINES:,}")
    return [_written(value) for value in values]


def _written(value: Decimal) -> str:
    """As people write it: 0.1 and not 1E-1, 1000 and not 1E+3."""
    near = round(value, 12 - value.adjusted())
    return str(int(near)) if near == int(near) else repr(float(near))


def _steps(first: int, last: int, step: int) -> range:
    step = abs(step) or 1
    if abs(last - first) // step >= MOST_LINES:
        raise TooMany(f"{abs(last - first) // step + 1:,} values, and at most {MOST_LINES:,}")
    return range(first, last + 1, step) if last >= first else range(first, last - 1, -step)
