"""A sweep file, read and checked: every mistake at once, each with file, line and mend."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runyard.config.overrides import Overrides, apply
from runyard.config.task_files import STANDARD_INPUT
from runyard.errors import ConfigError, NotFoundError
from runyard.reading.documents import DocumentError, read_document
from runyard.reading.files import listed_problems, refusal
from runyard.reading.problems import Problem
from runyard.search.command import TYPED, unfilled
from runyard.search.sweep import Sweep, read_sweep
from runyard.search.tasks import COMMAND_LINE


@dataclass(frozen=True)
class SweepFile:
    """A sweep as a file and a command line describe it. `data` is what a server is given; `text`
    is the file as it is written, without what the command line changes."""

    source: str
    text: str
    data: Mapping[str, Any]
    sweep: Sweep
    warnings: tuple[str, ...]


def read_sweep_file(
    path: str | Path,
    overrides: Overrides | None = None,
    needs_program: bool = False,
    *,
    text: str | None = None,
    environ: Mapping[str, str] = os.environ,
) -> SweepFile:
    """The sweep in a file, or on standard input for `-`; ConfigError lists all that is wrong.

    `needs_program`: the runs are to be started by a command line, so that there must be one.
    `text`: what the file would hold; then `path` is only how mistakes call it.
    """
    source, text = (str(path), text) if text is not None else _read_text(path)
    try:
        document = read_document(text, typed=TYPED)
    except DocumentError as error:
        raise ConfigError(error.text_with_place(source), mend=error.mend) from None
    data, origins = apply(document.data, overrides or Overrides())
    sweep, problems = read_sweep(data)
    if needs_program and sweep and sweep.program is None and sweep.command is None:
        mend = "add program: train.py, or command: […]"
        problems.append(Problem((), "the sweep says no program to run", mend))
    if sweep and sweep.command:
        names = (*sweep.space.top_names, COMMAND_LINE)
        problems += unfilled(sweep.command, names, environ)
    problems.sort(key=lambda problem: document.line_of(problem.path) or 0)

    def where(problem: Problem) -> str:
        """The option that wrote the wrong thing; else the line, and what was set beside it."""
        line = document.line_of(problem.path)
        place = f"{source}:{line}" if line else source
        for path, option in origins.items():
            if problem.path[: len(path)] == path:
                return option
            if len(path) > 1 and problem.path[: len(path) - 1] == path[:-1]:
                place = f"{place} with {option}"
        return place

    errors = [problem for problem in problems if problem.is_error]
    if errors or sweep is None:
        raise refusal(source, errors, where)
    return SweepFile(source, text, data, sweep, tuple(listed_problems(problems, where)))


def _read_text(path: str | Path) -> tuple[str, str]:
    if str(path) == STANDARD_INPUT:
        return "standard input", _decode("standard input", sys.stdin.buffer.read())
    source = str(path)
    try:
        return source, _decode(source, Path(path).read_bytes())
    except FileNotFoundError:
        raise NotFoundError(f"there is no file {source}", mend=_near(Path(path))) from None
    except OSError as error:
        mend = _near(Path(path) / "sweep.yaml") if Path(path).is_dir() else None
        raise ConfigError(f"{source} cannot be read", said=error.strerror, mend=mend) from None


def _decode(source: str, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ConfigError(
            f"{source}:{line}: this is no UTF-8 text", mend="save it as UTF-8"
        ) from None


def _near(path: Path) -> str:
    """The sweep files that are there instead."""
    folder = path.parent
    files = sorted(file.name for file in folder.glob("*.y*ml")) if folder.is_dir() else []
    if not files:
        return "name the file with the sweep, or write - for standard input"
    return f"there is {', '.join(files[:5])}"
