"""Which Pythons and packages runyard promises: every place that says so says the same.

`scripts/other_versions.py` tries them for real. That nothing newer than the oldest Python's library
and syntax is used, mypy and ruff hold: they are told that version.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = (ROOT / "pyproject.toml").read_text()
VERSIONS = re.findall(r"Programming Language :: Python :: (3\.\d+)", PROJECT)
SOURCES = sorted((ROOT / "src").rglob("*.py"))


def said(pattern: str) -> list[str]:
    found = re.findall(pattern, PROJECT, re.M)
    assert found, pattern
    return [str(one) for one in found]


def bounds(section: str) -> dict[str, str]:
    """The packages of one list in pyproject.toml with their lower bounds."""
    listed = re.search(rf"^{section} = \[(.*?)\]\n", PROJECT, re.M | re.S)
    assert listed is not None
    lines = listed[1]
    found = re.findall(r'"([\w-]+)>=([\d.]+)[^"]*"', lines)
    assert len(found) == len(re.findall(r'"[^"]+"', lines)), f"one of {section} has no lower bound"
    return dict(found)


def test_the_oldest_python_is_the_same_everywhere() -> None:
    oldest = VERSIONS[0]
    assert said(r'^requires-python = ">=([\d.]+)"') == [oldest]
    assert said(r'^python_version = "([\d.]+)"') == [oldest]
    assert said(r'^target-version = "py(\d+)"') == [oldest.replace(".", "")]
    tried = ", ".join(f'"{one}"' for one in VERSIONS)
    assert f"VERSIONS = ({tried})" in (ROOT / "scripts" / "other_versions.py").read_text()
    assert f"Python {oldest} or newer" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("room", sorted({path.parts[-2] for path in SOURCES}))
def test_every_file_is_read_by_the_oldest_python(room: str) -> None:
    major, minor = map(int, VERSIONS[0].split("."))
    for path in SOURCES:
        if path.parts[-2] == room:
            ast.parse(path.read_text(), filename=str(path), feature_version=(major, minor))


def test_the_page_of_versions_has_the_lower_bounds() -> None:
    page = (ROOT / "docs" / "versions.md").read_text()
    told = dict(re.findall(r"^\| ([\w-]+) \| ([\d.]+) \|", page, re.M))
    assert told == {**bounds("dependencies"), **bounds("example"), **bounds("export"),
                    **bounds("plots"), **bounds("tls")}  # fmt: skip
