"""How far a program is: from its progress file, or from the file of its wandb client."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from runyard.node.attempt.wandb_file import RecordFile, histories, read_row

Mark = tuple[int, float]
"""Number of steps done, and when (seconds since the epoch)."""


class Steps:
    """The steps of one program that runs in its own folder. `look` reads what is new."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._progress_read = 0
        self._files: dict[Path, RecordFile] = {}
        self._noted: list[Mark] = []
        self._logged: dict[Path, list[Mark]] = {}
        self.rows: list[dict[str, Any]] = []
        self.total: int | None = None
        """Steps of the whole run, if the program says it."""
        self.left: float | None = None
        """Seconds that the program expected after the last mark; it may know its phases."""
        self.left_between: tuple[float, float] | None = None
        """The same at least and at most, where the program says it."""

    @property
    def marks(self) -> list[Mark]:
        """From the progress file (`runyard.train`); else from the client with most rows."""
        return self._noted or max(self._logged.values(), key=len, default=[])

    def look(self) -> None:
        with contextlib.suppress(OSError):
            self._look_at_progress()
        for path in self._folder.glob("wandb/*run-*/run-*.wandb"):
            self._look_at_rows(path)

    def _look_at_progress(self) -> None:
        with (self._folder / "progress").open("rb") as file:
            file.seek(self._progress_read)
            data = file.read()
            at = (self._folder / "progress").stat().st_mtime
        whole = data[: data.rfind(b"\n") + 1]
        self._progress_read += len(whole)
        for line in whole.splitlines():
            with contextlib.suppress(ValueError, IndexError):
                words = line.split()
                step, total = int(words[0]), int(words[1])
                if self._noted and step < self._noted[-1][0]:
                    self._noted.clear()  # Another loop.
                self._noted.append((step, float(words[2]) if len(words) > 2 else at))
                self.total = total
                self.left = float(words[3]) if len(words) > 3 else None
                between = (float(words[4]), float(words[5])) if len(words) > 5 else None
                self.left_between = between

    def _look_at_rows(self, path: Path) -> None:
        file = self._files.setdefault(path, RecordFile(str(path)))
        marks = self._logged.setdefault(path, [])
        with contextlib.suppress(OSError, ValueError):
            for record in file.fresh():
                for history in histories(record):
                    row = read_row(history)
                    self.rows.append(row)
                    at, step = row.get("_timestamp"), row.get("_step")
                    if isinstance(at, int | float) and isinstance(step, int):
                        # Steps count from 0, and a row is logged when its step is done.
                        marks.append((step + 1, float(at)))
