"""A state folder for one benchmark, whose server ends with it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from runyard.client.discover import stop_server
from runyard.errors import RunyardError
from runyard.home import Home


@contextlib.contextmanager
def isolated_home(folder: Path) -> Iterator[Path]:
    home = Home(folder / "state")
    try:
        yield home.path
    finally:
        with contextlib.suppress(RunyardError, OSError):
            stop_server(home, force=True)
