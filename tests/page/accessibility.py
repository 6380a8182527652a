"""What axe, the accessibility checker, finds wrong with a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from tests.environments import skip_or_fail

_AXE = Path(__file__).parents[2] / "dashboard/app/node_modules/axe-core/axe.min.js"

# What is loaded beforehand serves rules on films and other frames, which the pages have not. Rules
# whose findings are all moderate or minor, whatever they find, are left out.
_RUN = """axe.run({
  resultTypes: ['violations'], preload: false, iframes: false,
  rules: Object.fromEntries(axe._audit.rules
    .filter((rule) => ['moderate', 'minor'].includes(rule.impact))
    .map((rule) => [rule.id, { enabled: false }])),
})"""


def serious(page: Page) -> list[str]:
    """The findings that axe calls serious or critical, each with the element it is about."""
    if not _AXE.exists():
        skip_or_fail("axe-core is missing: `npm ci` in dashboard/app")
    page.evaluate(_AXE.read_text())
    found: dict[str, Any] = page.evaluate(_RUN)
    return [
        f"{one['id']}: {one['help']}: {node['html'][:160]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"][:3]
    ]


def wide(page: Page) -> int:
    """By how many pixels the page is wider than the window."""
    over: int = page.evaluate("Math.max(0, document.documentElement.scrollWidth - innerWidth)")
    return over
