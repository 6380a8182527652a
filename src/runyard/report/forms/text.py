"""A report for a terminal, or for a text file: nothing is wider than it may be."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from runyard.report.findings import Report
from runyard.report.sections import Section, Table, in_short, sections

WIDTH = 80
_GAP = 2
_WIDEST_CELL = 40


def text(report: Report, width: int = WIDTH) -> str:
    lines = [report.title, *_wrapped("  ".join(report.about), width)]
    lines += [line for note in report.notes for line in _wrapped(note, width)]
    short = in_short(report)
    if short:
        lines += ["", *(f"  {name:<22} {value}" for name, value in short)]
    for section in sections(report):
        lines += ["", *_section(section, width)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _section(section: Section, width: int) -> Iterator[str]:
    yield section.title.upper()
    for words in section.words:
        yield from _wrapped(words, width)
    for point in section.points:
        yield from textwrap.wrap(point, width - 1, initial_indent="- ", subsequent_indent="  ",
                                 break_long_words=False, break_on_hyphens=False)  # fmt: skip
    for place, table in enumerate(section.tables):
        if place or section.words:
            yield ""
        if len(section.tables) > 1:
            yield table.title
        yield from table_lines(table, width)


def table_lines(table: Table, width: int) -> Iterator[str]:
    """The columns that fit; what does not, follows below each row as name=value."""
    widths = [
        min(_WIDEST_CELL, max(len(row[place]) for row in [table.head, *table.rows]))
        for place in range(len(table.head))
    ]
    fit = len(widths)
    while fit > 1 and sum(widths[:fit]) + _GAP * (fit - 1) + 2 > width:
        fit -= 1
    for row in [table.head, *table.rows]:
        cells = [_cell(row[place], widths[place], place in table.numbers) for place in range(fit)]
        yield ("  " + (" " * _GAP).join(cells)).rstrip()
        if row is not table.head and fit < len(widths):
            rest = zip(table.head[fit:], row[fit:], strict=True)
            told = "  ".join(f"{name}={value}" for name, value in rest if value)
            yield from textwrap.wrap(told, width - 1, initial_indent=" " * 6,
                                     subsequent_indent=" " * 6, break_long_words=False,
                                     break_on_hyphens=False)  # fmt: skip


def _cell(value: str, width: int, is_number: bool) -> str:
    shown = value if len(value) <= width else f"{value[: width - 1]}…"
    return shown.rjust(width) if is_number else shown.ljust(width)


def _wrapped(words: str, width: int) -> list[str]:
    return textwrap.wrap(words, width - 1, break_long_words=False, break_on_hyphens=False)
