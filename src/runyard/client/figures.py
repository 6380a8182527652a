"""What kinds of experiments need, through the server's own API, typed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from runyard.client.http import Connection


class KeptFigures(TypedDict):
    """One measurement."""

    kind: str
    hardware: str
    user: str
    made_at: float
    figures: dict[str, Any]


class Truth(TypedDict):
    """What the trials of a sweep that finished took: means, and the most of any."""

    trials: int
    seconds: float
    most: float
    memory_peak: float | None
    vram_peak: float | None
    cpus: float | None


class PastSweep(TypedDict):
    id: str
    name: str
    created_at: float
    estimate: dict[str, Any] | None
    truth: Truth


class Known(TypedDict):
    """The newest first."""

    figures: list[KeptFigures]
    sweeps: list[PastSweep]


class Expected(TypedDict):
    kind: str
    estimate: dict[str, Any] | None
    truth: Truth | None


class FiguresApi:
    """What the server remembers of kinds of experiments."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(
        self,
        project: str,
        kind: str,
        hardware: str,
        figures: Mapping[str, Any],
        *,
        entity: str | None = None,
    ) -> None:
        self._connection.post(
            "/api/figures",
            {
                "project": project,
                "entity": entity,
                "kind": kind,
                "hardware": hardware,
                "figures": dict(figures),
            },
        )

    def known(self, project: str, kind: str | None = None, *, entity: str | None = None) -> Known:
        """Of a project; of one kind, also what the sweeps of that kind took."""
        figures: Known = self._connection.get(
            "/api/figures", project=project, kind=kind, entity=entity
        )
        return figures

    def expect(self, sweep: int, kind: str, estimate: Mapping[str, Any]) -> None:
        """Keep what was expected of a sweep, to be compared with what it takes."""
        self._connection.post(
            f"/api/sweeps/{sweep}/estimate", {"kind": kind, "estimate": dict(estimate)}
        )

    def expected(self, sweep: int) -> Expected:
        """What was expected of a sweep, and what it took."""
        estimate: Expected = self._connection.get(f"/api/sweeps/{sweep}/estimate")
        return estimate
