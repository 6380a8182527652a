"""Finds the log files of a job by their pattern, in the order of tasks."""

from __future__ import annotations

import glob
import re
from dataclasses import dataclass
from pathlib import Path

_NUMBERS = re.compile(r"(\d+)")


@dataclass(frozen=True)
class LogPattern:
    """Where a job's logs are, as in its request to Slurm: `.../%A_%a.log`."""

    text: str | None
    job_id: str
    name: str
    is_array: bool

    def find(self, task: str | None = None) -> dict[Path, str]:
        """The existing files of all tasks or of one, each with its label: 40_7, 40-n2."""
        if not self.text:
            return {}
        known = {"A": self.job_id, "j": None if self.is_array else self.job_id,
                 "a": task, "x": self.name, "%": "%"}  # fmt: skip
        parts = re.split(r"%\d*(\w|%)", self.text)
        # Text and letters alternate. Letters that are not known here match anything.
        whole = "".join(
            glob.escape(part) if place % 2 == 0 else _filled(known.get(part))
            for place, part in enumerate(parts)
        )
        paths = set(glob.glob(whole))
        if not self.is_array and task is None:
            # A job over several nodes has one more log for each node.
            base, dot, suffix = whole.rpartition(".")
            paths |= set(glob.glob(f"{base}-*{dot}{suffix}"))
        return {Path(path): self._label(path) for path in sorted(paths, key=_natural)}

    def _label(self, path: str) -> str:
        # The part before the job's number is the same for all of them.
        match = re.search(rf"(?<!\d){self.job_id}(?!\d).*", Path(path).stem)
        return match[0] if match else self.job_id


def _filled(value: str | None) -> str:
    return "*" if value is None else glob.escape(value)


def _natural(path: str) -> list[int | str]:
    return [int(part) if part.isdecimal() else part for part in _NUMBERS.split(path)]
