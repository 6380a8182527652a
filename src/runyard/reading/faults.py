"""Finds the mistake in a text that is not YAML: what a person has to change, and how.

A parser stops where it cannot continue. This is often a line after the mistake: at the colon behind
a `key:value` that it took for text, or at the end of a file whose quotation was never closed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import cast

import yaml

# Of a long line, this many characters before and after the fault are shown.
_SHOWN = 60
_NO_SPACE = re.compile(r"(\s*(?:- +)*[\w./-]+):(?=[^\s:/\\])")
_KEY = re.compile(r"(\s*(?:- +)*)([\w./-]+|\"[^\"]*\"|'[^']*')\s*:(?: +|$)")
_CONFLICT = re.compile(r"(<{7}|={7}|>{7})( |$)")
# The scanner in C if PyYAML has it, because a text may be long.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# Line breaks as in YAML.
_BREAK = re.compile(r"\r\n|[\r\n\x85\u2028\u2029]")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


@dataclass(frozen=True)
class Fault:
    """A place, counted from 1, what is wrong there, and the mend."""

    line: int
    column: int
    message: str
    mend: str


def find_fault(text: str, error: yaml.YAMLError) -> Fault | None:
    """The fault behind a parser's error; None if the parser's own message is the best one."""
    lines = _BREAK.split(text)
    control = _CONTROL.search(text)
    if control is not None and not isinstance(error, yaml.MarkedYAMLError):
        line = text.count("\n", 0, control.start())
        column = control.start() - text.rfind("\n", 0, control.start()) - 1
        return _at(line, column, "a character that is none stands here", "remove it")
    mark = getattr(error, "problem_mark", None)
    if mark is None or mark.line > len(lines):
        return None
    return _Search(text, lines, error, mark).fault()


def snippet(text: str, line: int, column: int) -> str:
    """A line of the text and, below it, a caret at the column; both count from 1."""
    lines = _BREAK.split(text)
    whole = lines[line - 1] if line <= len(lines) else ""
    start = max(column - 1 - _SHOWN, 0)
    part = whole.rstrip()[start : column - 1 + _SHOWN]
    # One character for each, so that the caret is below the fault.
    shown = "".join(letter if letter.isprintable() else " " for letter in part)
    return f"    {shown}\n    {' ' * (column - 1 - start)}^"


def _at(line: int, column: int, message: str, mend: str) -> Fault:
    return Fault(line + 1, column + 1, message, mend)


class _Search:
    """All lines and columns count from 0 here, as the parser's marks do."""

    def __init__(self, text: str, lines: list[str], error: yaml.YAMLError, mark: yaml.Mark) -> None:
        self._text = text
        self._lines = lines
        self._words = f"{getattr(error, 'context', '')} {getattr(error, 'problem', '')}"
        context = getattr(error, "context_mark", None)
        self._context = context if context is not None else mark
        # An error at the very end belongs to the last line that is not empty.
        self._line, self._column = mark.line, mark.column
        self._here = lines[mark.line] if mark.line < len(lines) else ""

    def fault(self) -> Fault | None:
        return (
            self._conflict()
            or self._tab()
            or self._quotation()
            or self._brackets()
            or self._first_letter()
            or self._key()
            or self._colon_in_text()
            or self._indentation()
        )

    def _conflict(self) -> Fault | None:
        for number, line in enumerate(self._lines[: self._line + 2]):
            if _CONFLICT.match(line):
                return _at(number, 0, "a conflict of a merge was left here",
                           "keep one of the two sides, and remove the three marks")  # fmt: skip
        return None

    def _tab(self) -> Fault | None:
        for number in dict.fromkeys((self._line, self._above() or self._line)):
            line = self._lines[number] if number < len(self._lines) else ""
            column = line.find("\t", 0, _indent(line) + 1)
            if column >= 0:
                return _at(number, column, "a tab character stands where YAML wants spaces",
                           "indent with spaces; YAML allows no tabs there")  # fmt: skip
        return None

    def _quotation(self) -> Fault | None:
        if "escape" in self._words:
            return _at(self._line, self._column, "a backslash in double quotes begins an escape",
                       "write it twice, or use single quotes")  # fmt: skip
        begun = self._last_quoted()
        if "quoted scalar" in self._words:
            first, column = self._context.line, self._context.column
        elif begun is not None and begun[0].line < begun[1].line:
            first, column = begun[0].line, begun[0].column
        elif begun is not None and begun[1].line == self._line:
            quote = self._here[begun[0].column : begun[0].column + 1]
            inner = "''" if quote == "'" else '\\"'
            return _at(self._line, begun[1].column - 1,
                       "the quotation ends here, and more text follows",
                       f"write {inner} for a {quote} inside of it")  # fmt: skip
        else:
            return None
        quote = self._letter(first, column)
        return _at(first, column, "the quotation that begins here is not closed",
                   f"write {quote} at its end")  # fmt: skip

    def _last_quoted(self) -> tuple[yaml.Mark, yaml.Mark] | None:
        """Start and end of the quoted text right before the error, if there is one."""
        last: yaml.Event | None = None
        try:
            for event in yaml.parse(self._text, Loader=_LOADER):
                last = event
        except (yaml.YAMLError, UnicodeError):
            pass
        if isinstance(last, yaml.ScalarEvent) and last.style in ("'", '"'):
            return cast("tuple[yaml.Mark, yaml.Mark]", (last.start_mark, last.end_mark))
        return None

    def _brackets(self) -> Fault | None:
        if "flow" not in self._words:
            return None
        first, column = self._context.line, self._context.column
        opening = self._letter(first, column)
        closing = {"[": "]", "{": "}"}.get(opening, opening)
        here = self._here[self._column : self._column + 1]
        if here in ("]", "}"):
            return _at(self._line, self._column, f"{here} closes a {opening}",
                       f"write {closing} before it")  # fmt: skip
        if self._line > first:
            return _at(first, column, f"the {opening} that begins here is not closed",
                       f"write {closing} at its end")  # fmt: skip
        before = self._here[: self._column]
        *head, word = before.rsplit(maxsplit=1) or [""]
        if here == ":" and head and head[0].endswith(":"):
            return _at(self._line, self._column, "a colon stands inside of a text",
                       "put the text in quotes")  # fmt: skip
        place = len(before.rstrip()) - len(word) if here == ":" else self._column
        return _at(self._line, place, "a comma is missing before this",
                   "put a comma between the values")  # fmt: skip

    def _letter(self, line: int, column: int) -> str:
        return self._lines[line][column : column + 1] if line < len(self._lines) else ""

    def _first_letter(self) -> Fault | None:
        letter = self._here[self._column : self._column + 1]
        if "cannot start any token" in self._words:
            return _at(self._line, self._column, f"a text cannot begin with {letter}",
                       self._quoted(self._line, self._column))  # fmt: skip
        if "undefined alias" in self._words:
            mend = f"{self._quoted(self._line, self._column)}, or write &NAME above"
            return _at(self._line, self._column, "* begins an alias that is not known", mend)
        return None

    def _key(self) -> Fault | None:
        """`key:value`, `key value` and `-word`, which are text to YAML, before what it refuses."""
        suspects = {self._context.line: None, self._line: None, self._above(): None}
        if "could not find expected ':'" not in self._words:
            if "mapping values" not in self._words or _indent(self._here) == 0 == self._line:
                return None
            suspects = {self._above(): None}
        for number in suspects:
            if number is None or number >= len(self._lines):
                continue
            line = self._lines[number]
            no_space = _NO_SPACE.match(line)
            if no_space is not None and not _KEY.match(line):
                key, value = no_space[1].strip(), line[no_space.end() :].strip()
                return _at(number, no_space.end() - 1, "there is no space behind the colon",
                           f"write {key}: {value}")  # fmt: skip
            stripped = line.strip()
            if re.match(r"-\w", stripped):
                return _at(number, _indent(line), "there is no space behind the dash",
                           f"write - {stripped[1:]}")  # fmt: skip
            if stripped and ":" not in stripped and not stripped.startswith(("- ", "#")):
                word, _, value = stripped.partition(" ")
                return _at(number, _indent(line) + len(word), "there is no colon behind the key",
                           f"write {word}: {value}".rstrip())  # fmt: skip
        return None

    def _colon_in_text(self) -> Fault | None:
        key = _KEY.match(self._here)
        if "mapping values" not in self._words or key is None or key.end() > self._column:
            return None
        return _at(self._line, self._column, "a colon and a space stand inside of a text",
                   self._quoted(self._line, key.end()))  # fmt: skip

    def _indentation(self) -> Fault | None:
        indent, number = _indent(self._here), self._above()
        if number is None or not self._here.strip():
            return None
        above = self._lines[number]
        if "mapping values" in self._words and indent > _indent(above):
            return _at(self._line, indent,
                       f"this is indented deeper than line {number + 1}, which has a value already",
                       f"indent it by {_indent(above)} spaces, as that line")  # fmt: skip
        if "expected key" in self._words or "<block end>" in self._words:
            fitting = sorted(set(self._open_indents()))
            near = min(fitting, key=lambda other: (abs(other - indent), -other), default=0)
            mend = f"indent it by {near} spaces, as line {self._line_with(near) + 1}"
            message = f"nothing above is indented as this is, by {indent} spaces"
            return _at(self._line, indent, message, mend)
        return None

    def _open_indents(self) -> list[int]:
        """The indentations of the blocks around the line, each smaller than the one below it."""
        indents: list[int] = []
        for line in reversed(self._lines[: self._line]):
            if _says(line) and (not indents or _indent(line) < indents[-1]):
                indents.append(_indent(line))
        return indents

    def _line_with(self, indent: int) -> int:
        above = list(enumerate(self._lines[: self._line]))
        return next(n for n, line in reversed(above) if _says(line) and _indent(line) == indent)

    def _above(self) -> int | None:
        """The nearest line above that is not empty."""
        numbers = range(min(self._line, len(self._lines)) - 1, -1, -1)
        return next((number for number in numbers if _says(self._lines[number])), None)

    def _quoted(self, number: int, column: int) -> str:
        line = self._lines[number]
        value = re.sub(r"\s+#.*", "", line[column:]).strip()
        quote = "'" if '"' in value else '"'
        return f"write {line[:column].strip()} {quote}{value}{quote}".replace("write  ", "write ")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _says(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")
