"""Files of command lines: standard input in place of one, and files of those that run at a time,
tasks_0.txt, tasks_1.txt, ..."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from runyard.errors import ConfigError

STANDARD_INPUT = "-"
_OURS = re.compile(r"tasks_\d+\.txt")


def is_redirected() -> bool:
    """Whether standard input is a file or a pipe: `runyard farm < tasks.txt`."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, OSError, ValueError):
        return False
    return stat.S_ISREG(mode) or stat.S_ISFIFO(mode)


def parts_of(lines: Sequence[str], count: int) -> list[Sequence[str]]:
    """So many lines each; the last has what is left."""
    return [lines[begin : begin + count] for begin in range(0, len(lines), count)]


def write_task_files(parts: Iterable[Sequence[str]], folder: Path) -> list[Path]:
    """Write the files; those of an earlier list that had more of them are removed."""
    files: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for part in parts:
            file = folder / f"tasks_{len(files)}.txt"
            # Whole or not at all: a job may begin with it at any moment.
            written = file.with_suffix(".part")
            written.write_text("".join(f"{line}\n" for line in part), encoding="utf-8")
            written.replace(file)
            files.append(file)
        for old in folder.iterdir():
            if _OURS.fullmatch(old.name) and old not in files:
                old.unlink()
    except OSError as error:
        raise ConfigError(f"{folder} cannot be written", said=error) from error
    return files
