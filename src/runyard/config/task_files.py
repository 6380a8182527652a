"""A list of tasks as files of as many lines as run at a time: tasks_0.txt, tasks_1.txt, ..."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path

from runyard.config.task_list import TaskList
from runyard.errors import ConfigError

_OURS = re.compile(r"tasks_\d+\.txt")


def write_task_files(found: TaskList, lines: int, folder: Path) -> list[Path]:
    """Write the files; those of an earlier list that had more of them are removed."""
    left = iter(task.command_line for task in found.tasks.values())
    files: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        while part := list(islice(left, lines)):
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
