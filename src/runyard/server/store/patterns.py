"""Regular expressions in time that grows with the text alone.

Whoever may read may also filter, and Python's own engine can be kept busy for hours by eleven
characters, with every other thread waiting. This one follows all ways through a pattern at once and
remembers what it found; it has no look-around and no references back.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Union

_MOST_STATES = 2_000
_MOST_REMEMBERED = 20_000
_DEEPEST = 100
_WORD = re.compile(r"\w")
_CLASSES: dict[str, re.Pattern[str]] = {
    letter: re.compile(f"\\{letter}") for letter in ("d", "D", "w", "W", "s", "S")
}
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "0": "\0"}
_PLACES = {"b": "word", "B": "no word", "A": "start", "Z": "end", "z": "end"}

Test = Callable[[str], bool]


class BadPattern(ValueError):
    """A pattern that cannot be read, or that asks for more than this engine does."""


@dataclass(frozen=True)
class One:
    """One character that passes a test."""

    test: Test


@dataclass(frozen=True)
class Place:
    """A condition on where we are: start, end, word, no word."""

    kind: str


@dataclass(frozen=True)
class Row:
    """One after the other."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Choice:
    ways: tuple[Node, ...]


@dataclass(frozen=True)
class Repeat:
    part: Node
    least: int
    most: int | None


Node = Union[One, Place, Row, Choice, Repeat]  # noqa: UP007 - names itself before it is whole
# What a state does: take a character, check a place, or lead on to several states at once.
_State = tuple[Test | str | None, tuple[int, ...]]


class Pattern:
    """A compiled pattern. `search` says whether it stands anywhere in a text."""

    def __init__(self, text: str, *, ignore_case: bool = False) -> None:
        self._states: list[_State] = []
        reader = _Reader(text, ignore_case)
        node = reader.read()
        self._end = self._add(None, ())
        self._start = self._compile(node, self._end)
        self._known: dict[tuple[frozenset[int], str, str | None], frozenset[int] | bool] = {}

    def search(self, text: str) -> bool:
        here, before = frozenset([self._start]), "start"
        for letter in text:
            found = self._step(here, before, letter)
            if isinstance(found, bool):
                return found
            here, before = found, "word" if _WORD.match(letter) else "other"
        return self._step(here, before, None) is True

    def _step(self, here: frozenset[int], before: str, letter: str | None) -> frozenset[int] | bool:
        """Where a character leads from these states; True where the end was reached."""
        question = (here, before, letter)
        if question not in self._known:
            if len(self._known) >= _MOST_REMEMBERED:
                self._known.clear()
            self._known[question] = self._look(here, before, letter)
        return self._known[question]

    def _look(self, here: frozenset[int], before: str, letter: str | None) -> frozenset[int] | bool:
        # A match may begin at every character.
        found: set[int] = {self._start}
        waiting, seen = list(here), set(here)
        while waiting:
            number = waiting.pop()
            if number == self._end:
                return True
            action, ways = self._states[number]
            if callable(action):
                if letter is not None and action(letter):
                    found.update(ways)
            elif action is None or _is_at(action, before, letter):
                waiting.extend(way for way in ways if way not in seen)
                seen.update(ways)
        return frozenset(found)

    def _add(self, action: Test | str | None, ways: tuple[int, ...]) -> int:
        if len(self._states) >= _MOST_STATES:
            raise BadPattern("the pattern is too long, or repeats too much")
        self._states.append((action, ways))
        return len(self._states) - 1

    def _compile(self, node: Node, onward: int) -> int:
        """States for a node; returns the first of them."""
        if isinstance(node, One):
            return self._add(node.test, (onward,))
        if isinstance(node, Place):
            return self._add(node.kind, (onward,))
        if isinstance(node, Row):
            for part in reversed(node.parts):
                onward = self._compile(part, onward)
            return onward
        if isinstance(node, Choice):
            return self._add(None, tuple(self._compile(way, onward) for way in node.ways))
        return self._compile_repeat(node, onward)

    def _compile_repeat(self, node: Repeat, onward: int) -> int:
        if node.most is None:
            loop = self._add(None, ())
            self._states[loop] = (None, (self._compile(node.part, loop), onward))
            onward = loop
        else:
            leave = onward
            for _ in range(node.most - node.least):
                onward = self._add(None, (self._compile(node.part, onward), leave))
        for _ in range(node.least):
            onward = self._compile(node.part, onward)
        return onward


def _is_at(kind: str, before: str, letter: str | None) -> bool:
    if kind == "start":
        return before == "start"
    if kind == "end":
        return letter is None
    is_edge = (before == "word") != (letter is not None and bool(_WORD.match(letter)))
    return is_edge == (kind == "word")


class _Reader:
    """Reads the text of a pattern."""

    def __init__(self, text: str, ignore_case: bool) -> None:
        if text.startswith("(?i)"):
            text, ignore_case = text[4:], True
        self._text = text
        self._place = 0
        self._depth = 0
        self._ignore_case = ignore_case

    def read(self) -> Node:
        node = self._read_choice()
        if self._place < len(self._text):
            raise BadPattern("a ) closes nothing")
        return node

    def _next(self) -> str:
        return self._text[self._place : self._place + 1]

    def _take(self, wanted: str) -> bool:
        if self._text.startswith(wanted, self._place):
            self._place += len(wanted)
            return True
        return False

    def _letter(self) -> str:
        letter = self._next()
        if not letter:
            raise BadPattern("the pattern ends in the middle")
        self._place += 1
        return letter

    def _read_choice(self) -> Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise BadPattern("the pattern is nested too deep")
        ways = [self._read_row()]
        while self._take("|"):
            ways.append(self._read_row())
        self._depth -= 1
        return ways[0] if len(ways) == 1 else Choice(tuple(ways))

    def _read_row(self) -> Node:
        parts: list[Node] = []
        while self._next() not in ("", "|", ")"):
            parts.append(self._read_repeats(self._read_part()))
        return Row(tuple(parts))

    def _read_repeats(self, part: Node) -> Node:
        counts = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        if self._next() in counts and self._next():
            least, most = counts[self._letter()]
        elif found := re.compile(r"\{(\d{0,4})(?:(,)(\d{0,4}))?\}").match(self._text, self._place):
            if found[1] == found[3] == "" or (found[1] == "" and found[2] is None):
                return part  # Python takes `{}` for two characters, and so do the next rounds.
            self._place = found.end()
            least = int(found[1] or 0)
            most = least if found[2] is None else int(found[3]) if found[3] else None
            if most is not None and most < least:
                raise BadPattern("a repetition ends before it begins")
        else:
            return part
        if isinstance(part, Place):
            raise BadPattern("there is nothing to repeat")
        self._take("?")  # Which match is found is of no matter here, only whether there is one.
        if self._next() in ("*", "+", "?") and self._next():
            raise BadPattern("a repetition of a repetition")
        return Repeat(part, least, most)

    def _read_part(self) -> Node:
        letter = self._letter()
        if letter == "(":
            return self._read_group()
        if letter == "[":
            return One(self._read_set())
        if letter == ".":
            return One(lambda found: found != "\n")
        if letter in "^$":
            return Place("start" if letter == "^" else "end")
        if letter in "*+?":
            raise BadPattern("there is nothing to repeat")
        if letter == "\\":
            if self._next() in _PLACES and self._next():
                return Place(_PLACES[self._letter()])
            return One(self._cased(self._read_escape()))
        return One(self._cased(letter))

    def _read_group(self) -> Node:
        if self._take("?") and not self._take(":"):
            name = re.compile(r"P<\w+>").match(self._text, self._place)
            if name is None:
                raise BadPattern("of groups, only (...), (?:...) and (?P<name>...) are known here")
            self._place = name.end()
        node = self._read_choice()
        if not self._take(")"):
            raise BadPattern("a ( is not closed")
        return node

    def _read_escape(self) -> Test | str:
        letter = self._letter()
        if letter in _CLASSES:
            known = _CLASSES[letter]
            return lambda found: known.match(found) is not None
        if letter in ("x", "u"):
            digits = self._text[self._place : self._place + (2 if letter == "x" else 4)]
            self._place += len(digits)
            try:
                return chr(int(digits, 16))
            except ValueError as error:
                raise BadPattern(f"\\{letter}{digits} is no character") from error
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if letter.isalnum():
            raise BadPattern(f"\\{letter} is not known here")
        return letter

    def _read_set(self) -> Test:
        negated = self._take("^")
        tests: list[Test] = []
        first = True
        while first or self._next() != "]":
            first = False
            low = self._read_member()
            if isinstance(low, str) and self._next() == "-" and self._after_next() not in ("]", ""):
                self._place += 1
                high = self._read_member()
                if not isinstance(high, str) or high < low:
                    raise BadPattern("a range of characters that goes backwards")
                tests.append(self._ranged(low, high))
            else:
                tests.append(self._cased(low))
        self._place += 1
        return lambda found: any(test(found) for test in tests) != negated

    def _after_next(self) -> str:
        return self._text[self._place + 1 : self._place + 2]

    def _read_member(self) -> Test | str:
        letter = self._letter()
        return self._read_escape() if letter == "\\" else letter

    def _ranged(self, low: str, high: str) -> Test:
        if self._ignore_case:
            return lambda found: low <= found.lower() <= high or low <= found.upper() <= high
        return lambda found: low <= found <= high

    def _cased(self, wanted: Test | str) -> Test:
        if not isinstance(wanted, str):
            return wanted
        if self._ignore_case:
            folded = wanted.lower()
            return lambda found: found.lower() == folded
        return lambda found: found == wanted
