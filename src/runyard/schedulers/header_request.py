"""What a job's header is made from, and where its script says what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runyard.clusters.profile import Profile
    from runyard.config.request import Request
    from runyard.schedulers.resources import Ruled


@dataclass(frozen=True)
class HeaderRequest:
    """What a job is to ask for."""

    name: str
    request: Request
    profile: Profile
    ruled: Ruled
    form: str
    agents: int = 1
    grace: float = 0.0
    """So many seconds before its end the job gets `signal`, where the scheduler can do that."""
    signal: str = "USR2"
    requeue: bool = False
    more: Sequence[str] = ()
    """Options as the scheduler's commands take them."""


@dataclass(frozen=True)
class ScriptPlace:
    """What a script says of its own place, beside its header."""

    log: str | None
    """Where the output goes, with %A for an array's job, %a for its task, %j for a job, %N for its
    node; None: nowhere."""
    folder: Path | None = None
    tasks: int | None = None
    """As an array of 1 to so many."""
    at_once: int | None = None
    """How many of them run at a time."""
