"""How fast a program logs, read off the file that its wandb client keeps."""

from __future__ import annotations

import contextlib
import os
import time

from runyard.node.attempt.wandb_file import RecordFile, files_of, histories, read_row

# A file of an attempt before this one is not ours; clocks of file systems differ a little.
_CLOCKS = 2.0


class RowCount:
    """Rows of one attempt so far, and when the first and the last of them were logged."""

    def __init__(self, folder: str, run_id: str) -> None:
        self._folder = folder
        self._run_id = run_id
        self._since = time.time()
        self._file: RecordFile | None = None
        self.count = 0
        self.last_at: float | None = None
        self._first: tuple[float, int] | None = None
        self._last: tuple[float, int] | None = None

    def look(self) -> None:
        """Count what is new."""
        if self._file is None:
            self._file = self._find()
        last = b""
        with contextlib.suppress(OSError):
            for record in () if self._file is None else self._file.fresh():
                for row in histories(record):
                    self.count += 1
                    last = row
                    if self._first is None:
                        self._first = self._read(row)
        if last:
            self._last = self._read(last)
            self.last_at = None if self._last is None else self._last[0]

    @property
    def steps(self) -> int:
        """From the first row to the last. Who logs every hundredth step has done a hundred."""
        if self._first is None or self._last is None:
            return 0
        return max(self._last[1] - self._first[1], self.count - 1)

    def rate(self) -> float | None:
        """Steps a second, from the first row to the last; None before there are two."""
        if self._first is None or self._last is None:
            return None
        seconds = self._last[0] - self._first[0]
        return self.steps / seconds if seconds > 0 else None

    def _find(self) -> RecordFile | None:
        for path in files_of(self._folder, self._run_id)[-1:]:
            with contextlib.suppress(OSError):
                if os.stat(path).st_mtime >= self._since - _CLOCKS:
                    return RecordFile(path)
        return None

    def _read(self, row: bytes) -> tuple[float, int] | None:
        values = read_row(row)
        at, step = values.get("_timestamp"), values.get("_step")
        if not isinstance(at, (int, float)):
            return None
        return float(at), step if isinstance(step, int) else 0
