"""A report as one HTML file that needs nothing else: no network, no script, light and dark."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from html import escape

from runyard.report.drawing.svg import FONT, svg
from runyard.report.findings import Report
from runyard.report.plots import pictures
from runyard.report.sections import in_short, sections
from runyard.report.tables import Section, Table

_LIGHT = {
    "ground": "#f7f8fa", "surface": "#ffffff", "text": "#1b2130", "soft": "#565f73",
    "line": "#e2e5eb", "accent": "#2f4bd0", "pale": "#a9b6f0", "good": "#117a46", "bad": "#c02c2c",
    "warn": "#b87a10", "idle": "#cdd2dc",
}  # fmt: skip
_DARK = {
    "ground": "#101319", "surface": "#161a22", "text": "#e4e8f0", "soft": "#a3acbe",
    "line": "#2b3240", "accent": "#8ea4ff", "pale": "#48558f", "good": "#5fce93", "bad": "#ff8079",
    "warn": "#e9b45c", "idle": "#3f4859",
}  # fmt: skip
_STYLE = """
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--text);font:15px/1.5 FONT;font-variant-numeric:tabular-nums}
main{max-width:1080px;margin:0 auto;padding:32px 20px 64px}
h1{font-size:26px;line-height:1.2;margin:0 0 4px;overflow-wrap:anywhere}
h2{font-size:17px;margin:0 0 10px}
p{margin:0 0 10px}.soft{color:var(--soft)}
.note{border-left:3px solid var(--warn);padding-left:12px}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(170px,1fr));gap:12px;margin:20px 0;padding:0}
.figures div{background:var(--surface);border:1px solid var(--line);border-radius:10px;padding:12px 14px}
.figures dt{color:var(--soft);font-size:13px}.figures dd{margin:2px 0 0;font-size:20px;font-weight:600;overflow-wrap:anywhere}
section{background:var(--surface);border:1px solid var(--line);border-radius:10px;padding:18px 20px;margin:0 0 16px}
.wide{overflow-x:auto;margin:0 -20px 10px;padding:0 20px}
table{border-collapse:collapse;font-size:14px;width:100%}
caption{text-align:left;color:var(--soft);font-size:13px;padding:0 0 4px}
th,td{padding:5px 18px 5px 0;text-align:left;border-bottom:1px solid var(--line);white-space:nowrap;vertical-align:top}
thead th{color:var(--soft);font-weight:500;font-size:13px}
tbody tr:last-child td{border-bottom:0}
.right{text-align:right}
ul{margin:0 0 10px;padding-left:20px}li{margin:4px 0}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(440px,100%),1fr));gap:22px;margin-top:14px}
figure{margin:0;min-width:0;overflow-x:auto}figure svg{display:block;width:100%;min-width:440px;max-width:680px;height:auto}
footer{color:var(--soft);font-size:13px;margin-top:20px}
@media(max-width:520px){main{padding:20px 12px 48px}section{padding:14px}.wide{margin:0 -14px 10px;padding:0 14px}}
@media print{section{break-inside:avoid}body{background:#fff}}
"""  # noqa: E501 - Style sheets.


def page(report: Report) -> str:
    """The whole file; the numbers behind it are in it as JSON, but for the rows of trials."""
    drawn = {picture.name: svg(picture, styled=True) for picture in pictures(report)}
    notes = "".join(f'<p class="note">{_text(note)}</p>' for note in report.notes)
    figures = "".join(
        f"<div><dt>{_text(name)}</dt><dd>{_text(value)}</dd></div>"
        for name, value in in_short(report)
    )
    made = time.strftime("%Y-%m-%d %H:%M", time.localtime(report.made_at))
    # Within a script nothing but its end is read as markup.
    record = {name: value for name, value in report.to_json().items() if name != "trials"}
    numbers = json.dumps(record, default=str).replace("<", "\\u003c")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_text(report.title)}</title><style>{_style()}</style></head>\n<body><main>"
        f'<h1>{_text(report.title)}</h1><p class="soft">{_text(" · ".join(report.about))}</p>'
        f'{notes}<dl class="figures">{figures}</dl>\n'
        + "\n".join(_section(section, drawn) for section in sections(report))
        + f"\n<footer>Made by runyard on {made}.</footer></main>"
        f'<script type="application/json" id="report">{numbers}</script></body></html>\n'
    )


def _style() -> str:
    light, dark = (
        "".join(f"--{name}:{value};" for name, value in colours.items())
        for colours in (_LIGHT, _DARK)
    )
    roles = "".join(
        f".f-{name}{{fill:var(--{name})}}.s-{name}{{stroke:var(--{name})}}" for name in _LIGHT
    )
    return (
        f":root{{color-scheme:light dark;{light}}}"
        f"@media(prefers-color-scheme:dark){{:root{{{dark}}}}}"
        f"{roles}{_STYLE.replace('FONT', FONT)}"
    )


def _section(section: Section, drawn: Mapping[str, str]) -> str:
    words = "".join(f"<p>{_text(word)}</p>" for word in section.words)
    points = "".join(f"<li>{_text(point)}</li>" for point in section.points)
    tables = "".join(_table(table, titled=len(section.tables) > 1) for table in section.tables)
    figures = "".join(
        f'<figure tabindex="0">{drawn[name]}</figure>' for name in section.plots if name in drawn
    )
    return (
        f"<section><h2>{_text(section.title)}</h2>{words}"
        + (f"<ul>{points}</ul>" if points else "")
        + tables
        + (f'<div class="plots">{figures}</div>' if figures else "")
        + "</section>"
    )


def _table(table: Table, *, titled: bool) -> str:
    def cells(row: tuple[str, ...], tag: str) -> str:
        return "".join(
            f'<{tag} class="right">{_text(cell)}</{tag}>'
            if place in table.numbers
            else f"<{tag}>{_text(cell)}</{tag}>"
            for place, cell in enumerate(row)
        )

    caption = f"<caption>{_text(table.title)}</caption>" if titled else ""
    rows = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in table.rows)
    return (
        f'<div class="wide" tabindex="0"><table>{caption}<thead><tr>{cells(table.head, "th")}'
        f"</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _text(text: str) -> str:
    return escape(text)
