"""What an examination of a cluster found, one line each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "warn", "fail", "skip"]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: how it is, in words, and what to do about it."""

    group: str
    name: str
    state: State
    says: str
    mend: str | None = None
