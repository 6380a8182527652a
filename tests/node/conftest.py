"""One server for all tests of a module: they look at processes, not at the state folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from runyard.home import Home
from tests.conftest import end_server, isolate


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A state folder, and an environment in which the command line finds it."""
    folder = tmp_path_factory.mktemp("yard")
    with pytest.MonkeyPatch.context() as patch:
        isolate(folder, patch)
        home = Home(folder / "state")
        try:
            yield home
        finally:
            end_server(home)
