"""A picture as PNG. Pillow draws it: an extra, since nothing else here needs it."""

from __future__ import annotations

import importlib.util
import io
from typing import Any

from runyard.errors import RunyardError
from runyard.report.drawing.shapes import COLOURS, EDGE, Box, Dot, Line, Picture, Shape, Words

# Twice as fine as on a screen, for paper; and drawn finer still, since Pillow's edges are hard.
_FINE = 2
_OVER = 2
# With more letters than the one that Pillow brings along.
_FONTS = ("DejaVuSans.ttf", "LiberationSans-Regular.ttf", "Arial.ttf")
_BOLD = ("DejaVuSans-Bold.ttf", "LiberationSans-Bold.ttf", "Arial Bold.ttf")


def has_pillow() -> bool:
    return importlib.util.find_spec("PIL") is not None


def require_pillow() -> None:
    if not has_pillow():
        raise RunyardError(
            "PNG plots need Pillow, which is not installed",
            mend="pip install 'runyard[plots]'; .svg and .html need nothing",
        )


def png(picture: Picture) -> bytes:
    require_pillow()
    from PIL import Image, ImageDraw

    scale = _FINE * _OVER
    size = (
        round((picture.width + 2 * EDGE) * scale),
        round((picture.height + 2 * EDGE) * scale),
    )
    image = Image.new("RGB", size, COLOURS["ground"])
    pen = _Pen(ImageDraw.Draw(image), image, scale)
    for shape in picture.shapes:
        pen.draw(shape)
    small = image.resize((size[0] // _OVER, size[1] // _OVER), Image.Resampling.LANCZOS)
    out = io.BytesIO()
    small.save(out, "PNG", dpi=(72 * _FINE, 72 * _FINE))
    return out.getvalue()


class _Pen:
    def __init__(self, draw: Any, image: Any, scale: int) -> None:
        self._draw = draw
        self._image = image
        self._scale = scale
        self._fonts: dict[tuple[int, bool], Any] = {}

    def draw(self, shape: Shape) -> None:
        if isinstance(shape, Line):
            self._line(shape)
        elif isinstance(shape, Box):
            corner = (shape.x + max(0.0, shape.width), shape.y + shape.height)
            if shape.width > 0:
                self._draw.rectangle([*self._at(shape.x, shape.y), *self._at(*corner)],
                                     fill=COLOURS[shape.role])  # fmt: skip
        elif isinstance(shape, Dot):
            ends = [
                *self._at(shape.x - shape.radius, shape.y - shape.radius),
                *self._at(shape.x + shape.radius, shape.y + shape.radius),
            ]
            if shape.is_hollow:
                self._draw.ellipse(ends, outline=COLOURS[shape.role],
                                   width=round(1.4 * self._scale))  # fmt: skip
            else:
                self._draw.ellipse(ends, fill=COLOURS[shape.role])
        else:
            self._words(shape)

    def _line(self, shape: Line) -> None:
        width = max(1, round(shape.width * self._scale))
        pieces = [shape.points] if shape.dashes is None else _dashed(shape)
        for points in pieces:
            self._draw.line([self._at(x, y) for x, y in points], fill=COLOURS[shape.role],
                            width=width, joint="curve")  # fmt: skip

    def _words(self, shape: Words) -> None:
        font = self._font(round(shape.size * self._scale), shape.is_bold)
        text = "".join(letter if letter.isprintable() else " " for letter in shape.text)
        place, anchor = self._at(shape.x, shape.y), {"start": "l", "middle": "m", "end": "r"}
        how = f"{anchor[shape.anchor]}s"
        if not shape.is_upright:
            self._draw.text(place, text, fill=COLOURS[shape.role], font=font, anchor=how)
            return
        from PIL import Image, ImageDraw

        left, top, right, bottom = font.getbbox(text, anchor="ls")
        width, height = int(right - left) + 2, int(bottom - top) + 2
        aside = Image.new("L", (width, height), 0)
        ImageDraw.Draw(aside).text((-left, -top), text, fill=255, font=font, anchor="ls")
        turned = aside.rotate(90, expand=True)
        along = {"start": height, "middle": width / 2, "end": 0}[shape.anchor]
        above = place[1] - (width if shape.anchor == "start" else along)
        corner = (round(place[0] + top), round(above))
        self._image.paste(COLOURS[shape.role], (*corner, corner[0] + turned.width,
                          corner[1] + turned.height), turned)  # fmt: skip

    def _font(self, size: int, is_bold: bool) -> Any:
        if (size, is_bold) not in self._fonts:
            self._fonts[size, is_bold] = _find_font(size, is_bold)
        return self._fonts[size, is_bold]

    def _at(self, x: float, y: float) -> tuple[int, int]:
        return round((x + EDGE) * self._scale), round((y + EDGE) * self._scale)


def _find_font(size: int, is_bold: bool) -> Any:
    from PIL import ImageFont

    for name in _BOLD if is_bold else _FONTS:
        try:
            return ImageFont.truetype(name, size)
        except OSError:
            continue
    return ImageFont.load_default(size)


def _dashed(line: Line) -> list[tuple[tuple[float, float], ...]]:
    """Straight pieces of a line of two points; that is all that is dashed here."""
    (x, y), (to_x, to_y) = line.points[0], line.points[-1]
    assert line.dashes is not None
    length = ((to_x - x) ** 2 + (to_y - y) ** 2) ** 0.5
    on, off = line.dashes
    pieces, at = [], 0.0
    while at < length:
        end = min(length, at + on)
        pieces.append(tuple(
            (x + (to_x - x) * part / length, y + (to_y - y) * part / length) for part in (at, end)
        ))  # fmt: skip
        at += on + off
    return pieces
