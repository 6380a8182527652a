"""Errors of the program's side. A traceback shows all of their text, not the first line alone."""

from __future__ import annotations

from runyard.errors import RunyardError


class TrainError(RunyardError):
    """The program asked for something that cannot be done."""

    def __str__(self) -> str:
        lines = [self.what]
        if self.said is not None:
            lines.append(f"  it said:  {self.said}")
        if self.mend is not None:
            lines.append(f"  try:  {self.mend}")
        return "\n".join(lines)


class Damaged(TrainError):
    """A checkpoint is not as it was written."""


class NotFinite(TrainError):
    """A value that is watched became NaN or infinite."""
