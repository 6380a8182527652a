"""Runs a page of docs/tutorials: writes its files, types its commands, compares what they print.

- a block with a `title` is a file of that name
- a `bash` block is typed, and must end well, unless a comment in its first line says `exit code 1`
- a `text` block holds what the commands before it print: each of its lines, in this order, with
  anything for `...` and other lines between them
- a `console` block likewise, as one run printed it: words with a figure in them (numbers, times,
  ids, names of trials) may be others, and so may bars

A block of any other kind is only shown.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^( *)```(\w*)(?: +title=\"([^\"]+)\")?[^\n]*\n(.*?)^\1```$", re.M | re.S)
_ENDS_WITH = re.compile(r"# .*exit code (\d+)\n")
# A figure, or a part of a bar.
_VARIES = re.compile(r"\S*[\d▁-█]\S*")


@dataclass(frozen=True)
class Block:
    kind: str
    title: str | None
    text: str
    line: int


def blocks(page: str) -> Iterator[Block]:
    for found in _FENCE.finditer(page):
        indent, kind, title, text = found.groups()
        plain = re.sub(f"^{indent}", "", text, flags=re.M)
        yield Block(kind, title, plain, page.count("\n", 0, found.start()) + 1)


def run_tutorial(path: Path, folder: Path, environ: Mapping[str, str]) -> None:
    said = ""
    for block in blocks(path.read_text()):
        place = f"{path.name}, line {block.line}"
        if block.title is not None:
            file = folder / block.title
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text)
        elif block.kind == "bash":
            said = _type(block.text, folder, environ, place)
        elif block.kind in ("text", "console"):
            compare(block.text, said, place, is_sample=block.kind == "console")


def _type(text: str, folder: Path, environ: Mapping[str, str], place: str) -> str:
    expected = _ENDS_WITH.match(text)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        cwd=folder,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )
    wanted = int(expected[1]) if expected else 0
    assert done.returncode == wanted, f"{place}: exit code {done.returncode}\n{done.stdout}"
    return done.stdout


def compare(expected: str, said: str, place: str, *, is_sample: bool = False) -> None:
    rest = said.splitlines()
    for line in filter(str.strip, expected.splitlines()):
        shown = _VARIES.sub("...", line) if is_sample else line
        pattern = ".*".join(re.escape(part.strip()) for part in shown.split("..."))
        # How wide a column is depends on what else stands in it.
        pattern = re.sub(r"(\\ )+", r"\\s+", pattern)
        for number, printed in enumerate(rest):
            # A number alone is one that was counted.
            matches = re.fullmatch if line.strip().isdigit() else re.search
            if matches(pattern, printed.strip()):
                rest = rest[number + 1 :]
                break
        else:
            raise AssertionError(f"{place}: {line!r} was not printed here:\n{said}")
