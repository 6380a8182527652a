"""The session's Grid Engine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.packages import GRID_ENGINE, require

from .cluster import GridEngineCell


@pytest.fixture(scope="session")
def gridengine_cell() -> Iterator[GridEngineCell]:
    """Started when the first test asks for it; where it cannot be installed, the test is skipped,
    or fails in CI."""
    require(*GRID_ENGINE)
    with GridEngineCell() as cell:
        yield cell
