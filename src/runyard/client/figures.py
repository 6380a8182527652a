"""What kinds of experiments need, through the server's own API, typed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runyard.client.http import ApiPart
from runyard.shapes.jobs import Expected, Known


class FiguresApi(ApiPart):
    """What the server remembers of kinds of experiments."""

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
        return self._connection.get("/api/figures", project=project, kind=kind, entity=entity)

    def expect(self, sweep: int, kind: str, estimate: Mapping[str, Any]) -> None:
        """Keep what was expected of a sweep, to be compared with what it takes."""
        self._connection.post(
            f"/api/sweeps/{sweep}/estimate", {"kind": kind, "estimate": dict(estimate)}
        )

    def expected(self, sweep: int) -> Expected:
        """What was expected of a sweep, and what it took."""
        return self._connection.get(f"/api/sweeps/{sweep}/estimate")
