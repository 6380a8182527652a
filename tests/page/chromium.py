"""The browser of these tests: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import functools

from tests.slurm.packages import MissingPackagesError, find_program, install
from tests.slurm.plugin import skip_or_fail

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_TYPE = "sudo apt-get install chromium"


def require_chromium() -> str:
    """Where Chromium is; installed first where that can be done, or the test is skipped."""
    found = find_program(*_NAMES) or _install()
    if found is None:
        skip_or_fail(f"Chromium is missing: {_TYPE}")
    return found


@functools.cache  # A failed installation is not tried again for each test.
def _install() -> str | None:
    try:
        install(["chromium"])
    except MissingPackagesError:
        return None
    return find_program(*_NAMES)
