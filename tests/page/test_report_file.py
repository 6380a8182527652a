"""The file that `runyard report -o report.html` writes, in a real browser, without any network."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from runyard.report.forms.page import page
from runyard.report.plots import pictures
from tests.page.accessibility import serious
from tests.page.conftest import OpenPage
from tests.report.example import report

pytestmark = pytest.mark.live


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_it_reads_well_on_a_desk_and_on_a_phone(
    open_page: OpenPage, tmp_path: Path, width: int, scheme: str
) -> None:
    made = report()
    file = tmp_path / "report.html"
    file.write_text(page(made))
    opened = open_page(file.as_uri(), width=width, color_scheme=scheme, offline=True)
    expect(opened.get_by_role("heading", level=1)).to_have_text("birds")
    expect(opened.get_by_text("ask --memory 6G instead of 32G")).to_be_visible()
    drawn = opened.locator("figure svg")
    expect(drawn).to_have_count(len(pictures(made)))
    boxes = [svg.bounding_box() for svg in drawn.all()]
    assert all(box is not None and box["height"] > 40 for box in boxes)
    # Nothing hangs over the edge: what is wide is scrolled within its box.
    assert opened.evaluate("document.documentElement.scrollWidth") == width
    # The colours are those that the reader's system asks for, in words and in plots.
    colours = [
        opened.evaluate(f"getComputedStyle(document.querySelector('{where}')).{what}")
        for where, what in (("body", "backgroundColor"), (".f-accent", "fill"))
    ]
    expected = {
        "light": ["rgb(247, 248, 250)", "rgb(47, 75, 208)"],
        "dark": ["rgb(16, 19, 25)", "rgb(142, 164, 255)"],
    }
    assert colours == expected[scheme]
    assert serious(opened) == []
