"""Mistakes that people make in YAML: the message names the place to change, not where it ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from runyard.config.project_text import read_project_text
from runyard.config.sweep_file import read_sweep_file
from runyard.errors import ConfigError
from runyard.reading.documents import DocumentError, read_document

# What is written; where the fault is: the line, the column; its mend.
FAULTS = {
    "a tab for an indentation": ("a:\n\tb: 1\n", 2, 1, "indent with spaces"),
    "a tab behind spaces": ("a:\n  b:\n  \tc: 1\n", 3, 3, "indent with spaces"),
    "a quotation that ends nowhere": (
        'a: 1\nprogram: "train.py\nb: 2\nc: 3\n', 2, 10, 'write " at its end'),
    "a quotation that the next one ends": (
        'program: "train.py\nname: "x"\nb: 2\n', 1, 10, 'write " at its end'),
    "a single quotation": ("a: 'b\nc: 1\n", 1, 4, "write ' at its end"),
    "an apostrophe in single quotes": ("a: 'it's mine'\nb: 1\n", 1, 7, "write '' for a '"),
    "deeper below a value": (
        "method: grid\n  program: x.py\n", 2, 3, "indent it by 0 spaces, as that line"),
    "one space too many": (
        "lr:\n  min: 0\n   max: 1\n", 3, 4, "indent it by 2 spaces, as that line"),
    "one space too few": (
        "p:\n    lr:\n      min: 0\n   bs: 1\n", 4, 4, "indent it by 4 spaces, as line 2"),
    "an item that is too far left": (
        "command:\n  - python\n - x.py\n", 3, 2, "indent it by 2 spaces, as line 2"),
    "a key twice": ("method: grid\na: 1\nmethod: grid\n", 3, 1, "remove one of the two"),
    "a colon in a text": (
        "a: 1\nname: run: the first\n", 2, 10, 'write name: "run: the first"'),
    "a colon in a list's text": ("a: [python, b: c: d]\n", 1, 17, "put the text in quotes"),
    "no space behind the first key's colon": (
        "method:grid\nprogram: x.py\n", 1, 7, "write method: grid"),
    "no space behind an inner key's colon": (
        "lr:\n  min:0\n  max: 1\n", 2, 6, "write min: 0"),
    "no space behind the last key's colon": (
        "program: x.py\nmethod:grid\n", 2, 7, "write method: grid"),
    "no colon": ("a: 1\nprogram x.py\nb: 2\n", 2, 8, "write program: x.py"),
    "no colon behind a key with keys below": ("lr\n  min: 0\n", 1, 3, "write lr:"),
    "no space behind a dash": (
        "command:\n  - python\n  -x.py\n", 3, 3, "write - x.py"),
    "a bracket that is not closed": (
        "a: {b: [1, 2]\nc: 3\n", 1, 4, "write } at its end"),
    "the wrong bracket": ("a: {b: [1, 2}\n", 1, 13, "write ] before it"),
    "no comma": ("a: {b: 1 c: 2}\n", 1, 10, "put a comma between"),
    "a text that begins with a percent sign": ("name: %x\n", 1, 7, 'write name: "%x"'),
    "a text that begins with a star": ("name: *x\n", 1, 7, 'write name: "*x"'),
    "a backslash in double quotes": ('a: "C:\\path"\n', 1, 7, "write it twice"),
    "a no-break space": ("a:\n\u00a0\u00a0b: 1\n", 2, 1, "write spaces"),
    "a character that is none": ("a: 1\nb: x\x07y\n", 2, 5, "remove it"),
    "a conflict of a merge": (
        "a: 1\n<<<<<<< HEAD\nb: 1\n=======\nb: 2\n>>>>>>> x\n", 2, 1, "keep one of the two"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_the_place_and_the_mend_are_those_of_the_fault(name: str) -> None:
    text, line, column, mend = FAULTS[name]
    with pytest.raises(DocumentError) as caught:
        read_document(text)
    assert (caught.value.line, caught.value.column) == (line, column), caught.value.message
    assert mend in caught.value.mend
    shown, caret = caught.value.snippet.split("\n")
    assert caret.index("^") == 4 + column - 1
    assert (
        shown.strip()
        == "".join(
            letter if letter.isprintable() else " "
            for letter in text.split("\n")[line - 1].rstrip()
        ).strip()
    )


@pytest.mark.parametrize("kind", ["sweep", "project"])
def test_the_line_is_shown_with_a_caret_below_the_fault(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "runyard.yaml"
    file.write_text("name: x\ncommand:python train.py\nresources: {gpus: 1}\n")
    with pytest.raises(ConfigError) as caught:
        read_sweep_file(file) if kind == "sweep" else read_project_text(file)
    assert caught.value.what == (
        f"{file}:2:8: there is no space behind the colon\n    command:python train.py\n           ^"
    )
    assert caught.value.mend == "write command: python train.py"


def test_a_long_line_is_cut_around_the_fault() -> None:
    text = f"name: {'x' * 500}: {'y' * 500}\n"
    with pytest.raises(DocumentError) as caught:
        read_document(text)
    shown, caret = caught.value.snippet.split("\n")
    assert len(shown) < 150
    assert shown[caret.index("^")] == ":"


@pytest.mark.parametrize("brk", ["\r", "\x85", "\u2028", "\u2029", "\r\n"])
def test_lines_end_where_yaml_ends_them(brk: str) -> None:
    with pytest.raises(DocumentError) as caught:
        read_document(f"a: 1{brk}b: [1, 2{brk}c: 3")
    assert caught.value.line == 2
    with pytest.raises(DocumentError):
        read_document(f"a: 1{brk}b: 'x{brk}c: 3")
