"""Inputs that are nearly right: a valid one with a few parts replaced, moved, repeated or cut.

Inputs are JSON values or texts. What would be large is written as a short mark (`@deep:3000`), and
becomes large when the input is used: so the corpus stays small, and can be read.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

Path = tuple[Any, ...]

_MARK = re.compile(r'"@(deep|long|digits|list|object|wide):(\d+)"|@(deep|long|digits):(\d+)')
_MOST_PARTS = 20_000
ODD: Sequence[Any] = (
    None, True, False, 0, 1, -1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63) - 1, 2**64, 10**30,
    0.5, -0.0, 1e308, 5e-324, float("nan"), float("inf"), float("-inf"),
    "", " ", "0", "-1", "1e400", "null", "NaN", "a/b", "../..", ".", "\x00", "a\x00b", "\n", "\r\n",
    "\ud800", "\udfff\ud800", "\ufeff", "\u202e", "\x1b[31m", "é" * 40, "'", '"', "\\", "%", "*",
    "{}", "[]", "{", "[", "$", "@latest", "a:b", "2026-13-45T99:99:99", "(a+)+$", "((){99}){99}",
    [], {}, [None], [[]], [{}], {"": ""}, {"value": None}, {"a": {"a": {"a": []}}},
    "@deep:100", "@deep:900", "@deep:3000", "@deep:100000", "@long:70000", "@long:1000000",
    "@digits:20", "@digits:400", "@digits:5000", "@list:20000", "@object:5000", "@object:60000",
    "@wide:300",
)  # fmt: skip
_LETTERS = "\x00\n\r\t |,;:=%#[]{}()\"'`\\/.-_+*&!?<>@$0179azAZ\x7f\x85\xa0\u2028\u0661\u00b2\ud800"


# Above the usual limit of a body. Our own copies of a larger one would be what is measured.
_LARGEST = 5_000_000


def expand(text: str) -> str:
    """The text with its marks written out; what would become larger than any limit, only once."""
    size = 0

    def write_out(match: re.Match[str]) -> str:
        nonlocal size
        written = _written_out(match) if size < _LARGEST else "[]"
        size += len(written)
        return written

    return _MARK.sub(write_out, text)


def as_bytes(text: str) -> bytes:
    """As UTF-8; half surrogates of the right half stand for single bytes that are no UTF-8."""
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return text.encode(errors="replace")


def _written_out(match: re.Match[str]) -> str:
    kind, count = match[1] or match[3], min(int((match[2] or match[4])[:7]), 1_000_000)
    quote = '"' if match[1] else ""
    if kind == "deep":
        return "[" * count + "]" * count
    if kind == "long":
        return f"{quote}{'a' * count}{quote}"
    if kind == "digits":
        return "7" * count
    if kind == "list":
        return f"[{'1,' * count}1]"
    keys = range(min(count, 200_000))
    if kind == "object":
        return json.dumps({f"k{number}": number for number in keys})
    return json.dumps({f"k{number}": [[], [{}]] for number in keys})


class Mutations:
    """Changes, chosen by a random generator. `words` are texts that mean something to the target,
    `donors` other inputs, parts of which are put in."""

    def __init__(self, random: Random, words: Sequence[str], donors: Sequence[Any]) -> None:
        self._random = random
        self._words = words
        self._donors = donors

    def change(self, value: Any) -> Any:
        """A copy with one to four changes."""
        changed = copy.deepcopy(value)
        for _ in range(self._random.choice((1, 1, 1, 2, 2, 4))):
            changed = self._change_once(changed)
        return changed

    def _change_once(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.change_text(value)
        paths = list(_paths(value))
        path = self._random.choice(paths)
        if not path:
            return self._odd() if self._random.random() < 0.2 else value
        holder = _at(value, path[:-1])
        change = self._random.choice(_CHANGES)
        change(self, holder, path[-1])
        return value

    def _odd(self) -> Any:
        if self._words and self._random.random() < 0.3:
            return self._random.choice(self._words)
        return copy.deepcopy(self._random.choice(ODD))

    def _replace(self, holder: Any, key: Any) -> None:
        holder[key] = self._odd()

    def _retype(self, holder: Any, key: Any) -> None:
        value = holder[key]
        forms: list[Any] = [[value], {"value": value}, [value, value], {str(value)[:20]: value}]
        if isinstance(value, dict):
            forms += [list(value.values()), list(value), json.dumps(value)]
        elif isinstance(value, list):
            forms += [value[0] if value else None, dict(enumerate(map(str, value)))]
        elif isinstance(value, str):
            forms += [len(value), list(value[:9]), value.encode(errors="replace").hex()]
        elif isinstance(value, int | float):
            forms += [str(value), float(value) if abs(value) < 1e300 else 0.5, value == 0]
        holder[key] = self._random.choice(forms)

    def _remove(self, holder: Any, key: Any) -> None:
        del holder[key]

    def _repeat(self, holder: Any, key: Any) -> None:
        part = copy.deepcopy(holder[key])
        if isinstance(holder, list):
            holder[key:key] = [part] * self._random.choice((1, 2, 30))
        else:
            holder[self._random.choice(list(holder))] = part

    def _rename(self, holder: Any, key: Any) -> None:
        if isinstance(holder, list):
            self._random.shuffle(holder)
        else:
            name = self._odd()
            holder[name if isinstance(name, str) else str(name)] = holder.pop(key)

    def _graft(self, holder: Any, key: Any) -> None:
        donor = self._random.choice(self._donors) if self._donors else holder
        paths = list(_paths(donor))
        holder[key] = copy.deepcopy(_at(donor, self._random.choice(paths)))

    def _tweak(self, holder: Any, key: Any) -> None:
        value = holder[key]
        if isinstance(value, str):
            holder[key] = self.change_text(value)
        elif isinstance(value, bool) or value is None:
            holder[key] = not value
        elif isinstance(value, int | float):
            change = self._random.choice((1, -1, -2 * value, value, 2**31, 0.5))
            holder[key] = value + change
        else:
            self._retype(holder, key)

    def change_text(self, text: str) -> str:
        if text[:1] in ("{", "[") and self._random.random() < 0.7:
            try:
                return json.dumps(self.change(json.loads(text)))
            except (ValueError, RecursionError):
                pass
        change = self._random.choice(_TEXT_CHANGES)
        return change(self, text)

    def _splice(self, text: str) -> str:
        begin, end = self._span(text)
        odd = self._random.choice((*self._words, *map(str, ODD)))
        return text[:begin] + odd + text[end:]

    def _cut(self, text: str) -> str:
        begin, end = self._span(text)
        return text[:begin] + text[end:]

    def _double(self, text: str) -> str:
        begin, end = self._span(text)
        return text[:end] + text[begin:end] * self._random.choice((1, 2, 20)) + text[end:]

    def _letter(self, text: str) -> str:
        place = self._random.randint(0, len(text))
        letter = self._random.choice(_LETTERS) * self._random.choice((1, 1, 1, 2, 80))
        return text[:place] + letter + text[place + self._random.choice((0, 1)) :]

    def _number(self, text: str) -> str:
        numbers = list(re.finditer(r"-?\d+(?:\.\d+)?", text))
        if not numbers:
            return self._letter(text)
        match = self._random.choice(numbers)
        odd = self._random.choice(
            ("0", "-1", "1.5", "1e9", "999999999999", "@digits:400", "@digits:5000", "", "x",
            "\u0663",
             "\u00b2", "nan", "00", "1_0", "+1")
        )  # fmt: skip
        return text[: match.start()] + odd + text[match.end() :]

    def _lines(self, text: str) -> str:
        lines = text.splitlines(keepends=True)
        if len(lines) < 2:
            return self._double(text)
        first, second = self._random.randrange(len(lines)), self._random.randrange(len(lines))
        match self._random.randrange(4):
            case 0:
                lines[first], lines[second] = lines[second], lines[first]
            case 1:
                lines.insert(first, lines[second])
            case 2:
                del lines[first]
            case _:
                donor = self._random.choice(self._donors) if self._donors else text
                others = donor.splitlines(keepends=True) if isinstance(donor, str) else []
                lines.insert(first, self._random.choice(others) if others else "\n")
        return "".join(lines)

    def _span(self, text: str) -> tuple[int, int]:
        if self._random.random() < 0.6:
            words = list(re.finditer(r"\w+|[^\w\s]+|\s+", text))
            if words:
                match = self._random.choice(words)
                return match.start(), match.end()
        begin = self._random.randint(0, len(text))
        return begin, min(len(text), begin + self._random.choice((0, 1, 3, 20, 200)))


_CHANGES: Sequence[Callable[[Mutations, Any, Any], None]] = (
    Mutations._replace, Mutations._replace, Mutations._retype, Mutations._remove,
    Mutations._repeat, Mutations._rename, Mutations._graft, Mutations._tweak, Mutations._tweak,
)  # fmt: skip
_TEXT_CHANGES: Sequence[Callable[[Mutations, str], str]] = (
    Mutations._splice, Mutations._splice, Mutations._cut, Mutations._double, Mutations._letter,
    Mutations._number, Mutations._lines,
)  # fmt: skip


def _paths(value: Any) -> Iterator[Path]:
    """The places of all parts, the whole one first."""
    waiting: list[tuple[Path, Any]] = [((), value)]
    for count, (path, part) in enumerate(waiting):
        if count > _MOST_PARTS:
            return
        yield path
        if isinstance(part, dict):
            waiting += [((*path, key), item) for key, item in part.items()]
        elif isinstance(part, list):
            waiting += [((*path, key), item) for key, item in enumerate(part)]


def _at(value: Any, path: Path) -> Any:
    for key in path:
        value = value[key]
    return value


def smaller(value: Any) -> Iterator[Any]:
    """The input with one part less: for finding the smallest that still fails."""
    if isinstance(value, str):
        for pieces in (value.splitlines(keepends=True), list(value)):
            for size in (len(pieces) // 2, len(pieces) // 8, 1):
                for begin in range(0, len(pieces), size) if size else ():
                    yield "".join(pieces[:begin] + pieces[begin + size :])
        return
    for path in list(_paths(value)):
        if not path:
            continue
        less = copy.deepcopy(value)
        del _at(less, path[:-1])[path[-1]]
        yield less
        part = _at(value, path)
        if isinstance(part, str) and len(part) > 8:
            for half in (part[: len(part) // 2], part[len(part) // 2 :]):
                less = copy.deepcopy(value)
                _at(less, path[:-1])[path[-1]] = half
                yield less
