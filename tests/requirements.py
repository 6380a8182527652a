"""Reads docs/requirements.md: its rows, and the tests that prove each of them.

The tests of the table, the gate at the end of `./test` and `scripts/mutations.py` share it, so it
imports the standard library only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

PAGE = Path("docs/requirements.md")
_ROW = re.compile(r"^\| (S\d\.\d+) \| (.*) \| (.*) \|$", re.MULTILINE)
_NOT_BUILT = "not built: "
# FILE::TEST, or FILE::TEST (SWITCH=VALUE ...).
_TEST = re.compile(r"([^\s,():]+\.py::\w+)(?: \((\w+=\w+(?: \w+=\w+)*)\))?")


@dataclass(frozen=True)
class NamedTest:
    """A test that a row names, as FILE::TEST.

    A long form runs only with its `switches`, which are environment variables.
    """

    name: str
    switches: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        words = " ".join("=".join(switch) for switch in self.switches)
        return f"{self.name} ({words})" if words else self.name


@dataclass(frozen=True)
class Row:
    """A statement, and the tests that prove it or the reason why it was not built."""

    id: str
    statement: str
    tests: tuple[NamedTest, ...]
    not_built: str = ""

    @property
    def place(self) -> tuple[int, int]:
        """Where it stands in the table."""
        seed, number = self.id.removeprefix("S").split(".")
        return int(seed), int(number)


def read_rows(page: Path = PAGE) -> list[Row]:
    """Raises ValueError for a line that cannot be read, and for an id that stands there twice."""
    text = page.read_text(encoding="utf-8")
    rows = [_read_row(*match.groups()) for match in _ROW.finditer(text)]
    if len(rows) != len(re.findall(r"^\| S", text, re.MULTILINE)):
        raise ValueError(f"{page}: a row is not | id | what must be true | test |")
    ids = [row.id for row in rows]
    if len(ids) != len(set(ids)):
        raise ValueError(f"{page}: twice: {sorted({name for name in ids if ids.count(name) > 1})}")
    return rows


def read_tests(proof: str) -> tuple[NamedTest, ...]:
    """Of a list FILE::TEST, FILE::TEST (SWITCH=1), ..."""
    tests = []
    for text in proof.split(", "):
        match = _TEST.fullmatch(text)
        if match is None:
            raise ValueError(f"no test as FILE::TEST or FILE::TEST (SWITCH=1): {text}")
        words = (match[2] or "").split()
        tests.append(
            NamedTest(match[1], tuple((word.split("=")[0], word.split("=")[1]) for word in words))
        )
    return tuple(tests)


def _read_row(name: str, statement: str, proof: str) -> Row:
    if proof.startswith(_NOT_BUILT):
        return Row(name, statement, (), proof.removeprefix(_NOT_BUILT))
    try:
        return Row(name, statement, read_tests(proof))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
