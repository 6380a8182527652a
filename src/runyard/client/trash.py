"""The server's trash: deleted runs, which can be restored for 30 days."""

from __future__ import annotations

from collections.abc import Sequence

from runyard.client.http import ApiPart
from runyard.shapes.runs import TrashedRun


class TrashApi(ApiPart):
    def runs(self) -> list[TrashedRun]:
        """What lies in it, the latest deletion first."""
        return self._connection.get("/api/trash")

    def restore(self, keys: Sequence[int]) -> None:
        self._connection.post("/api/trash/restore", {"runs": list(keys)})

    def delete(self, keys: Sequence[int]) -> None:
        """For good, before the 30 days are over."""
        self._connection.post("/api/trash/delete", {"runs": list(keys)})
