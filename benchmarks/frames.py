"""What a browser shows, frame by frame, and when a chart has its colour."""

from __future__ import annotations

import contextlib
from typing import Any

from playwright.sync_api import BrowserContext, Error, Page

# Where the largest drawing is. Drawings as large as the window are grounds, small ones icons.
_CHART = """
() => {
  const seen = (box) => {
    const [left, top] = [Math.max(0, box.left), Math.max(0, box.top)];
    const [right, low] = [Math.min(innerWidth, box.right), Math.min(innerHeight, box.bottom)];
    return {x: left, y: top, width: Math.max(0, right - left), height: Math.max(0, low - top)};
  };
  const boxes = [...document.querySelectorAll('canvas, svg')]
    .map((one) => seen(one.getBoundingClientRect()))
    .filter((box) => box.width > 150 && box.height > 100);
  boxes.sort((one, other) => other.width * other.height - one.width * one.height);
  return boxes[0] ?? null;
}
"""
# How many pixels of a picture's part are neither grey nor nearly so: lines of charts are coloured.
_INK = """
async ([picture, box]) => {
  const bitmap = await createImageBitmap(await (await fetch(picture)).blob());
  const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
  const pen = canvas.getContext('2d', {willReadFrequently: true});
  pen.drawImage(bitmap, 0, 0);
  const {data} = pen.getImageData(box.x, box.y, box.width, box.height);
  let ink = 0;
  for (let at = 0; at < data.length; at += 4) {
    const [red, green, blue] = [data[at], data[at + 1], data[at + 2]];
    if (Math.max(red, green, blue) - Math.min(red, green, blue) > 40) ink++;
  }
  return ink;
}
"""
# A chart that has this much of its colour is there; axes and words may still settle.
_MOST = 0.7


def chart_box(page: Page) -> dict[str, float] | None:
    found: dict[str, float] | None = page.evaluate(_CHART)
    return found


def ink_of(page: Page) -> int:
    """How much colour the largest chart has now; 0 where there is none."""
    box = chart_box(page)
    if box is None:
        return 0
    session = page.context.new_cdp_session(page)
    try:
        taken = session.send("Page.captureScreenshot", {"format": "png"})
    finally:
        session.detach()
    blank = page.context.new_page()
    try:
        ink: int = blank.evaluate(_INK, [f"data:image/png;base64,{taken['data']}", box])
    finally:
        blank.close()
    return ink


class Recording:
    """Every frame that a page shows, with the time at which it was shown."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._frames: list[tuple[float, str]] = []
        self._box: dict[str, float] | None = None

    def __enter__(self) -> Recording:
        self._session = self._page.context.new_cdp_session(self._page)
        self._session.on("Page.screencastFrame", self._keep)
        self._session.send("Page.startScreencast", {"format": "jpeg", "quality": 70})
        return self

    def _keep(self, event: dict[str, Any]) -> None:
        self._frames.append((event["metadata"]["timestamp"] * 1000, event["data"]))
        with contextlib.suppress(Error):  # A frame that was on its way when the session ended.
            self._session.send("Page.screencastFrameAck", {"sessionId": event["sessionId"]})

    def __exit__(self, *_: object) -> None:
        self._box = chart_box(self._page)
        self._session.send("Page.stopScreencast")
        self._session.detach()

    def first_full(self, context: BrowserContext) -> float:
        """When the chart had most of the colour that it has at the end, in epoch milliseconds."""
        assert self._box is not None
        page = context.new_page()
        try:
            inks = [
                page.evaluate(_INK, [f"data:image/jpeg;base64,{data}", self._box])
                for _, data in self._frames
            ]
        finally:
            page.close()
        enough = inks[-1] * _MOST
        return next(
            at for (at, _), ink in zip(self._frames, inks, strict=True) if ink and ink >= enough
        )
