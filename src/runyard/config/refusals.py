"""Why a site would not take a request."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Refusal:
    """What is wrong, what to do, and which setting it is about (`resources.time`)."""

    what: str
    mend: str
    path: str
