"""Everything that the real client logs is drawn, on the page of a run and of a project."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from runyard.client.api import Api
from runyard.client.discover import ensure_server
from runyard.home import Home
from tests.page.accessibility import serious, wide
from tests.page.conftest import DRAWING, OpenPage, login_link
from tests.page.gallery import PROJECT, log_gallery

pytestmark = pytest.mark.live

CHARTS = ("line", "scatter", "bar", "histogram", "series", "confusion", "roc", "own")
SOLIDS = ("points", "kinds", "colours", "scene")
# How many different colours a viewer's canvas has: one is an empty drawing.
COLOURS = """(canvas) => {
  const copy = document.createElement('canvas');
  [copy.width, copy.height] = [canvas.width, canvas.height];
  const context = copy.getContext('2d');
  context.drawImage(canvas, 0, 0);
  const pixels = new Uint32Array(context.getImageData(0, 0, copy.width, copy.height).data.buffer);
  return new Set(pixels).size;
}"""

# Of the mask at a place that is the tree's.
ALPHA = "(canvas) => canvas.getContext('2d').getImageData(28, 85, 1, 1).data[3]"


@pytest.fixture(scope="module")
def yard(module_home: Home, tmp_path_factory: pytest.TempPathFactory) -> Home:
    log_gallery(module_home, tmp_path_factory.mktemp("gallery"), "first")
    log_gallery(module_home, tmp_path_factory.mktemp("gallery"), "second", shift=2)
    return module_home


@pytest.fixture
def api(yard: Home) -> Api:
    return ensure_server(yard).api


@pytest.fixture
def place(api: Api) -> str:
    return f"{api.runs(limit=1)[0]['entity']}/{PROJECT}"


def panel(page: Page, name: str) -> Locator:
    found = page.get_by_role("region", name=name, exact=True)
    found.scroll_into_view_if_needed()
    return found


def expect_drawn(region: Locator, count: int = 1) -> None:
    # What is loaded above a panel may move it out of sight again, where nothing is drawn.
    expect(region.locator(".viewer")).to_have_count(count)
    for viewer in region.locator(".viewer").all():
        viewer.scroll_into_view_if_needed()
        expect(viewer).to_have_attribute("data-state", "drawn", timeout=DRAWING)


def test_all_that_is_logged_is_drawn(yard: Home, place: str, open_page: OpenPage) -> None:
    page = open_page(login_link(yard, f"{place}/runs/first/media"), height=2600)
    for name in CHARTS:
        expect_drawn(panel(page, f"charts/{name}"))
    for name in (*(f"solids/{name}" for name in SOLIDS), "molecules/benzene", "plotly"):
        expect_drawn(panel(page, name))
    expect_drawn(panel(page, "solids/mesh"), 2)
    # Drawn means that there is something to see.
    line = panel(page, "charts/line").frame_locator("iframe").locator("canvas").first
    assert line.evaluate(COLOURS) > 10
    own = panel(page, "charts/own").frame_locator("iframe").locator("canvas").first
    assert own.evaluate(COLOURS) > 10
    figure = panel(page, "plotly").frame_locator("iframe")
    expect(figure.get_by_text("A hill")).to_be_visible()

    gif = panel(page, "videos/gif").locator("img")
    expect(gif).to_have_js_property("naturalWidth", 96)
    expect(panel(page, "videos/gif").get_by_text("a GIF")).to_be_visible()
    expect(panel(page, "videos/two").locator("video")).to_have_js_property("videoWidth", 64)
    expect(panel(page, "sound").locator("audio")).to_have_js_property("duration", 0.5)
    html = panel(page, "pages/html").frame_locator("iframe")
    expect(html.get_by_role("heading", name="A page")).to_be_visible()
    some = panel(page, "pictures/some")
    expect(some.locator("figcaption")).to_have_text([f"number {place}" for place in range(4)])
    # No value was left as a link to its file.
    expect(page.locator(".item-place > a[download]")).to_have_count(0)
    # So full, it can be used by everybody.
    expect(panel(page, "tables/mixed").locator("tbody tr")).to_have_count(3)
    assert serious(page) == []
    assert not wide(page)
    # A chart stands in the place of its table, which one can see too.
    expect(page.get_by_role("region", name="charts/bar_table")).to_have_count(0)
    bar = panel(page, "charts/bar")
    bar.get_by_role("button", name="Show its table").click()
    expect(bar.get_by_text("crow")).to_be_visible()


def test_masks_and_boxes_have_their_classes(yard: Home, place: str, open_page: OpenPage) -> None:
    page = open_page(login_link(yard, f"{place}/runs/first/media"))
    one = panel(page, "pictures/one")
    expect(one.locator("canvas[data-layer=prediction]")).to_be_visible()
    expect(one.locator("canvas[data-layer=truth]")).to_be_visible()
    expect(one.locator("svg text")).to_have_text(["bird 0.93", "tree"])
    # Both forms of a box, in shares of the image and in pixels, are where they belong.
    boxes = one.locator("svg rect")
    expect(boxes.nth(1)).to_have_attribute("x", "10")
    expect(boxes.nth(1)).to_have_attribute("width", "45")
    mask = one.get_by_role("group", name="Mask prediction")
    mask.get_by_role("button").first.wait_for()
    assert mask.get_by_role("button").all_inner_texts() == ["sky", "tree", "bird"]
    layer = one.locator("canvas[data-layer=prediction]")
    assert layer.evaluate(COLOURS) == 3, "a colour for each class"
    mask.get_by_role("button", name="tree").click()
    expect(mask.get_by_role("button", name="tree")).to_have_attribute("aria-pressed", "false")
    assert layer.evaluate(ALPHA) == 0, "the tree is not painted any more"
    one.get_by_role("group", name="Boxes prediction").get_by_role("button", name="bird").click()
    expect(one.locator("svg text")).to_have_text(["tree"])
    # The slider goes back in time, and a click enlarges.
    slider = page.get_by_label("Step of pictures/one")
    slider.fill("1")
    expect(one.get_by_text("a bird at step 1")).to_be_visible()
    one.get_by_role("button", name="Enlarge a bird at step 1").click()
    image = page.get_by_role("dialog").get_by_role("img", name="a bird at step 1")
    box = image.bounding_box()
    assert box is not None
    assert box["height"] > 500


def test_tables_hold_media_and_grow(yard: Home, place: str, open_page: OpenPage) -> None:
    page = open_page(login_link(yard, f"{place}/runs/first/media"))
    mixed = panel(page, "tables/mixed").locator("table")
    expect(mixed.locator("tbody tr")).to_have_count(3)
    expect(mixed.locator("img").first).to_have_js_property("naturalWidth", 96)
    expect(mixed.locator("audio").first).to_have_js_property("duration", 0.5)
    mixed.get_by_role("button", name="Show").nth(1).click()
    shown = page.get_by_role("dialog").frame_locator("iframe")
    expect(shown.get_by_text("bird 1")).to_be_visible()
    page.keyboard.press("Escape")
    mixed.get_by_role("button", name="Enlarge bird 2").click()
    expect(page.get_by_role("dialog").get_by_role("img")).to_be_visible()
    page.keyboard.press("Escape")
    growing = panel(page, "tables/growing").locator("table tbody tr")
    expect(growing).to_have_count(5)
    expect(growing.locator("td:first-child")).to_have_text(["0", "1", "2", "3", "4"])
    page.get_by_label("Step of tables/growing").fill("1")
    expect(growing).to_have_count(2)


def test_runs_are_side_by_side_under_one_slider(
    yard: Home, place: str, open_page: OpenPage
) -> None:
    page = open_page(login_link(yard, place), height=1400)
    both = panel(page, "pictures/one")
    first, second = (
        both.get_by_role("group", name=name, exact=True) for name in ("first", "second")
    )
    expect(first.get_by_text("a bird at step 4")).to_be_visible()
    expect(second.get_by_text("a bird at step 6")).to_be_visible()
    page.get_by_label("Step of pictures/one").fill("0")
    expect(first.get_by_text("a bird at step 0")).to_be_visible()
    expect(second.get_by_text("a bird at step 2")).to_be_visible()
    left, right = first.bounding_box(), second.bounding_box()
    assert left is not None
    assert right is not None
    assert left["y"] == right["y"], "side by side"
    # A card, as on a run's page: nothing touches its edge.
    expect(both).to_have_css("padding-left", "14px")
    matrix = panel(page, "charts/confusion")
    expect_drawn(matrix, 2)


def test_libraries_are_loaded_when_they_are_needed(
    yard: Home, place: str, open_page: OpenPage
) -> None:
    # A narrow window has few drawings in sight; all but one of them would be in vain.
    page = open_page(login_link(yard, f"{place}/runs/first"), width=390)
    seen: list[str] = []
    page.on("request", lambda request: seen.append(request.url))
    page.reload()
    expect(page.get_by_role("tab", name="Media")).to_be_visible()
    expect(page.locator(".u-over").first).to_be_visible()
    assert not [url for url in seen if "viewer" in url or "Media" in url], "charts need none"
    page.get_by_role("tab", name="Media").click()
    expect_drawn(panel(page, "charts/bar"))
    assert any("viewer-vega" in url for url in seen)


def test_media_can_be_used_by_everybody_and_on_a_phone(
    yard: Home, place: str, open_page: OpenPage
) -> None:
    page = open_page(login_link(yard, f"{place}/runs/first/media"), width=390)
    expect_drawn(panel(page, "charts/bar"))
    expect(panel(page, "tables/mixed").locator("tbody tr")).to_have_count(3)
    assert serious(page) == []
    assert not wide(page)
