"""The results of checks of a cluster, one line each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "warn", "fail", "skip"]


@dataclass(frozen=True)
class Finding:
    """The result of one check, in words, and what to do about it."""

    group: str
    name: str
    state: State
    says: str
    mend: str | None = None
