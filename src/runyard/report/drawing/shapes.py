"""What a picture is made of: lines, boxes, dots and words, in colours that have a meaning.

Pixels, from the upper left. A colour is a role (`COLOURS`), so that one picture can be light, dark,
or styled by the document around it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

Anchor = Literal["start", "middle", "end"]
Point = tuple[float, float]

# Roles on white paper. The page's stylesheet has the same names for light and dark.
COLOURS = {
    "ground": "#ffffff",
    "text": "#1b2130",
    "soft": "#565f73",
    "line": "#e2e5eb",
    "accent": "#2f4bd0",
    "pale": "#a9b6f0",
    "good": "#117a46",
    "bad": "#c02c2c",
    "warn": "#c98a1b",
    "idle": "#cdd2dc",
}
TEXT_SIZE = 12.0
# Of common fonts without serifs, the widest: a mean over letters and digits.
_LETTER = 0.63
# Around a picture that stands alone.
EDGE = 14.0


@dataclass(frozen=True)
class Line:
    points: tuple[Point, ...]
    role: str
    width: float = 1.0
    dashes: tuple[float, float] | None = None

    def moved(self, down: float) -> Line:
        return replace(self, points=tuple((x, y + down) for x, y in self.points))


@dataclass(frozen=True)
class Box:
    x: float
    y: float
    width: float
    height: float
    role: str
    title: str = ""

    def moved(self, down: float) -> Box:
        return replace(self, y=self.y + down)


@dataclass(frozen=True)
class Dot:
    x: float
    y: float
    radius: float
    role: str
    is_hollow: bool = False
    title: str = ""

    def moved(self, down: float) -> Dot:
        return replace(self, y=self.y + down)


@dataclass(frozen=True)
class Words:
    x: float
    y: float
    text: str
    role: str = "soft"
    size: float = TEXT_SIZE
    anchor: Anchor = "start"
    is_bold: bool = False
    is_upright: bool = False
    """Read from below, beside a vertical axis."""

    def moved(self, down: float) -> Words:
        return replace(self, y=self.y + down)


Shape = Line | Box | Dot | Words


@dataclass(frozen=True)
class Picture:
    """One plot. `name` is its file's, `title` what it shows, `says` what one sees in it."""

    name: str
    title: str
    width: float
    height: float
    shapes: Sequence[Shape] = field(default_factory=tuple)
    says: str = ""


def stacked(pictures: Iterable[Picture], name: str, title: str) -> Picture:
    """All of them in one, below each other."""
    shapes: list[Shape] = []
    down = width = 0.0
    for picture in pictures:
        shapes += [shape.moved(down) for shape in picture.shapes]
        down += picture.height + 16
        width = max(width, picture.width)
    return Picture(name, title, width, down, shapes)


def width_of(text: str, size: float = TEXT_SIZE) -> float:
    """About how wide words are."""
    return sum(1.0 if ord(letter) > 0x2E80 else _LETTER for letter in text) * size


def cut(text: str, room: float, size: float = TEXT_SIZE) -> str:
    """Words that fit, or their beginning."""
    if width_of(text, size) <= room:
        return text
    most = max(1, int(room / (size * _LETTER)) - 1)
    return f"{text[:most]}…"
