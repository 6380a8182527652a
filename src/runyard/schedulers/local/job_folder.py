"""A job of this machine as a folder: its script, and a file for each task that says how it is.

The job's supervisor holds the lock of the folder for as long as it lives. A job without one whose
tasks have not ended was killed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from runyard.home import write_whole
from runyard.locks import FolderLock

# Lines of the script's header: `#RUNYARD array=3` and `#RUNYARD output=PATH`; {task} in the path is
# the number of the task.
_HEADER = re.compile(r"^#RUNYARD (array|output)=(.+)$", re.MULTILINE)


@dataclass(frozen=True)
class TaskState:
    """How a task is; `state` is a name of `schedulers/states.py`."""

    state: str = "PENDING"
    start: float | None = None
    end: float | None = None


class JobFolder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.script = path / "script.sh"
        self.lock = path / "lock"

    @property
    def options(self) -> dict[str, str]:
        return dict(_HEADER.findall(self.script.read_text()))

    @property
    def tasks(self) -> int | None:
        """How many an array has; None: it is no array."""
        return int(self.options["array"]) if "array" in self.options else None

    @property
    def numbers(self) -> range:
        return range(1, (self.tasks or 1) + 1)

    @property
    def after(self) -> str | None:
        file = self.path / "after"
        return file.read_text() if file.exists() else None

    def log(self, task: int) -> Path:
        named = self.options.get("output", str(self.path / "log"))
        return Path(named.replace("{task}", str(task)))

    def is_alive(self) -> bool:
        return not FolderLock(self.lock).is_free()

    def write(self, task: int, state: TaskState) -> None:
        write_whole(self.path / f"task-{task}.json", json.dumps(asdict(state)))

    def read(self, task: int) -> TaskState:
        try:
            return TaskState(**json.loads((self.path / f"task-{task}.json").read_text()))
        except FileNotFoundError:
            return TaskState()

    def states(self) -> Iterator[tuple[int, TaskState]]:
        """Each task and how it is."""
        is_alive = self.is_alive()
        for task in self.numbers:
            state = self.read(task)
            if not is_alive and state.end is None:
                ended = "CANCELLED" if self.is_cancelled(task, state.state) else "FAILED"
                state = TaskState(ended, state.start, self.lock.stat().st_mtime)
            yield task, state

    def cancel(self, task: int | None, *, only_waiting: bool) -> None:
        """Ask the supervisor to end a task, or all."""
        name = "cancel" if task is None else f"cancel-{task}"
        write_whole(self.path / name, "waiting" if only_waiting else "any")

    def is_cancelled(self, task: int, state: str) -> bool:
        for name in ("cancel", f"cancel-{task}"):
            file = self.path / name
            if file.exists() and (state == "PENDING" or file.read_text() == "any"):
                return True
        return False
