"""The browser of these tests: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

from tests.packages import PACKAGES, find_program, require


def require_chromium() -> str:
    """Where Chromium is; installed first where that can be done, or the test is skipped."""
    require("chromium")
    return find_program(*PACKAGES["chromium"]) or ""
