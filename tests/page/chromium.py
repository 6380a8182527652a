"""The browser of these tests: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

from playwright.sync_api import Browser, Playwright

from tests.packages import PACKAGES, find_program, require

# Switched off by Playwright too. Chromium reads the last --disable-features only, which is ours.
_AS_PLAYWRIGHT = (
    "AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "HttpsUpgrades",
    "HttpsFirstBalancedModeAutoEnable", "LensOverlay", "MediaRouter", "PaintHolding",
    "ThirdPartyStoragePartitioning", "AvoidCorsURLLoaderRestartOnRedirect", "OptimizationHints",
    "NetworkTimeServiceQuerying", "AimEnabled", "PreconnectToSearch",
)  # fmt: skip
# For each window Chromium loads two pages for the list under its address bar, which nobody sees:
# a second of the processor, and more than most of our own pages take.
_ADDRESS_BAR = ("WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup")
_ARGUMENTS = [
    "--no-sandbox",  # In a container it cannot make one; it sees our own pages alone.
    "--disable-features=" + ",".join([*_AS_PLAYWRIGHT, *_ADDRESS_BAR]),
]


def require_chromium() -> str:
    """Where Chromium is; installed first where that can be done, or the test is skipped."""
    require("chromium")
    return find_program(*PACKAGES["chromium"]) or ""


def launch_chromium(playwright: Playwright) -> Browser:
    """A Chromium without a window, and without what it only does for one."""
    return playwright.chromium.launch(executable_path=require_chromium(), args=_ARGUMENTS)
