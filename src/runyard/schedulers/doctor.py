"""What `runyard doctor` asks of a scheduler: facts, findings, a look from a node, a draft."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from runyard.clusters.findings import Finding
    from runyard.clusters.place import Recognised
    from runyard.clusters.profile import Profile
    from runyard.clusters.stand_ins import StandIns
    from runyard.config.request import Request


@dataclass(frozen=True)
class Outcome:
    """What a node said of itself, or why it said nothing."""

    answers: Mapping[str, Any] | None
    trouble: str | None = None
    mend: str | None = None
    job_id: str | None = None


@dataclass(frozen=True)
class ProbeRequest:
    """What the job looks for, and who waits for it."""

    folders: Mapping[str, Path]
    home: Path
    keys: Sequence[str]
    wait: float
    say: Callable[[str], None]


@dataclass(frozen=True)
class Site:
    """What is known of a cluster without its scheduler."""

    host: str
    containers: list[str]
    cuda: list[str]
    node: Mapping[str, Any] | None
    """What the doctor's job found on a compute node."""
    date: str = field(default_factory=lambda: time.strftime("%Y-%m-%d"))


class Doctor(Protocol):
    """Asks its scheduler once, when it is made."""

    user: str
    """Who asks."""

    @property
    def is_here(self) -> bool: ...

    @property
    def facts(self) -> dict[str, Any]:
        """What the scheduler said, as JSON."""

    def share(self, names: StandIns) -> list[dict[str, Any]]:
        """Each `command` with its `answer`, without names: for a file that leaves the site."""

    def check(self, profile: Profile, here: Recognised) -> Iterable[Finding]: ...

    def look_from_inside(self, request: Request, profile: Profile, wanted: ProbeRequest) -> Outcome:
        """A short job that looks at its node, and which of the folders it sees."""

    def check_nodes(
        self, outcome: Outcome, profile: Profile, folders: Mapping[str, str]
    ) -> Iterable[Finding]: ...

    def draft(self, site: Site) -> tuple[str, str]:
        """A name and the text of a profile for a cluster that nobody has described."""
