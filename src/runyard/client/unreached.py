"""Notes of nodes that do not reach the server: left by their agents in the shared state folder."""

from __future__ import annotations

import contextlib
import json
import time
from dataclasses import dataclass

from runyard.home import Home

# An agent writes its note anew every minute; one that gave up leaves it, for this long.
_REMEMBERED_SECONDS = 3600.0


@dataclass(frozen=True)
class Unreached:
    node: str
    job: str | None
    why: str
    since: float


def read_unreached(home: Home) -> list[Unreached]:
    """The newest first; what is old is removed."""
    notes: list[tuple[float, Unreached]] = []
    with contextlib.suppress(OSError):
        for file in (home.path / "unreached").glob("*.json"):
            with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
                content = json.loads(file.read_text())
                if time.time() - float(content["told_at"]) > _REMEMBERED_SECONDS:
                    file.unlink()
                    continue
                note = Unreached(
                    str(content["node"]), content["job"], str(content["why"]), content["since"]
                )
                notes.append((float(content["told_at"]), note))
    return [note for _, note in sorted(notes, key=lambda pair: -pair[0])]
