"""Sweep files, good and bad. The head of each says what is to come of it, and that is all of it:

# expect: ok, 24 points             a sweep, whose grid has so many points (or: no grid)
# expect: error line 7: words       a problem in that line, whose text or mend holds the words
# expect: warning line 7: words     the same, and the sweep works
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from runyard.config.sweep_file import read_sweep_file
from runyard.errors import ConfigError
from runyard.reading.documents import DocumentError, read_document
from runyard.search.sweep import read_sweep

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.yaml"))


def outcome(text: str) -> list[str]:
    try:
        document = read_document(text)
    except DocumentError as error:
        return [f"error line {error.line}: {error.message}; {error.mend}"]
    sweep, problems = read_sweep(document.data)
    found = [
        f"{'error' if problem.is_error else 'warning'} line "
        f"{document.line_of(problem.path) or 'none'}: {problem.message}; {problem.mend}"
        for problem in problems
    ]
    if sweep is not None:
        size = "no grid" if sweep.space.size is None else f"{sweep.space.size} points"
        found.append(f"ok, {size}")
    return found


@pytest.mark.parametrize("file", CORPUS, ids=lambda file: file.stem)
def test_a_sweep_file_gives_what_its_head_says(file: Path) -> None:
    text = file.read_text()
    expected = re.findall(r"^# expect: (.*)$", text, re.MULTILINE)
    found = outcome(text)
    assert len(found) == len(expected), found
    for wanted in expected:
        head, _, words = wanted.partition(": ")
        assert [one for one in found if one.startswith(head) and words in one], (wanted, found)


@pytest.mark.parametrize("file", CORPUS, ids=lambda file: file.stem)
def test_each_mistake_is_told_with_file_and_line(file: Path) -> None:
    expected = re.findall(r"^# expect: error line (\d+)", file.read_text(), re.MULTILINE)
    if "expect: ok" in file.read_text():
        assert read_sweep_file(file).sweep is not None
        return
    with pytest.raises(ConfigError) as caught:
        read_sweep_file(file)
    told = f"{caught.value.what}\n{caught.value.mend}"
    for line in expected:
        assert f"{file}:{line}" in told


def test_the_corpus_is_large_and_holds_both_kinds() -> None:
    names = [file.stem for file in CORPUS]
    assert len(names) >= 60
    assert sum(name.startswith("real_") for name in names) >= 20
    assert sum(name.startswith("bad_") for name in names) >= 30
