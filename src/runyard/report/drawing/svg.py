"""A picture as SVG: with its colours written in, or with classes for a document's stylesheet."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from runyard.report.drawing.shapes import COLOURS, EDGE, Box, Dot, Line, Picture, Shape, Words

FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif'


def svg(picture: Picture, *, styled: bool = False) -> str:
    """A whole document. `styled`: colours come from around it, by the classes `f-…` and `s-…`."""
    edge = 0.0 if styled else EDGE
    width, height = f"{picture.width + 2 * edge:.0f}", f"{picture.height + 2 * edge:.0f}"
    size = "" if styled else f' width="{width}" height="{height}"'
    corner = f"{-edge:g} {-edge:g}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg"{size} viewBox="{corner} {width} {height}" '
        f'role="img" aria-label="{escape(picture.title)}" font-family="{escape(FONT)}">',
        f"<title>{escape(picture.title)}</title>",
    ]
    if not styled:
        lines.append(
            f'<rect x="{-edge:g}" y="{-edge:g}" width="{width}" height="{height}" '
            f'fill="{COLOURS["ground"]}"/>'
        )
    lines += [line for shape in picture.shapes for line in _drawn(shape, styled)]
    return "\n".join([*lines, "</svg>"])


def _drawn(shape: Shape, styled: bool) -> Iterator[str]:
    if isinstance(shape, Line):
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in shape.points)
        dashes = f' stroke-dasharray="{shape.dashes[0]} {shape.dashes[1]}"' if shape.dashes else ""
        yield (
            f'<polyline points="{points}" fill="none" {_stroke(shape.role, styled)} '
            f'stroke-width="{shape.width:g}" stroke-linejoin="round"{dashes}/>'
        )
    elif isinstance(shape, Box):
        yield (
            f'<rect x="{shape.x:.1f}" y="{shape.y:.1f}" width="{max(0.0, shape.width):.1f}" '
            f'height="{shape.height:.1f}" {_fill(shape.role, styled)}>{_title(shape.title)}</rect>'
        )
    elif isinstance(shape, Dot):
        paint = (
            f'fill="none" {_stroke(shape.role, styled)} stroke-width="1.4"'
            if shape.is_hollow
            else _fill(shape.role, styled)
        )
        yield (
            f'<circle cx="{shape.x:.1f}" cy="{shape.y:.1f}" r="{shape.radius:g}" {paint}>'
            f"{_title(shape.title)}</circle>"
        )
    else:
        yield _words(shape, styled)


def _words(shape: Words, styled: bool) -> str:
    bold = ' font-weight="600"' if shape.is_bold else ""
    turned = f' transform="rotate(-90 {shape.x:.1f} {shape.y:.1f})"' if shape.is_upright else ""
    return (
        f'<text x="{shape.x:.1f}" y="{shape.y:.1f}" font-size="{shape.size:g}" '
        f'text-anchor="{shape.anchor}" {_fill(shape.role, styled)}{bold}{turned}>'
        f"{escape(_printable(shape.text))}</text>"
    )


def _printable(text: str) -> str:
    """XML has no place for control characters, not even escaped."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _title(text: str) -> str:
    return f"<title>{escape(_printable(text))}</title>" if text else ""


def _fill(role: str, styled: bool) -> str:
    return f'class="f-{role}"' if styled else f'fill="{COLOURS[role]}"'


def _stroke(role: str, styled: bool) -> str:
    return f'class="s-{role}"' if styled else f'stroke="{COLOURS[role]}"'
