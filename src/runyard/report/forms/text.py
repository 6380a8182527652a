"""A report for a terminal, or for a text file: nothing is wider than it may be."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from runyard.printable import printable
from runyard.report.findings import Report
from runyard.report.sections import in_short, sections
from runyard.report.tables import Section, Table

WIDTH = 80
_GAP = 2
_WIDEST_CELL = 40


def text(report: Report, width: int = WIDTH, *, bold: bool = False) -> str:
    """`bold`: headings stand out, on terminals that can."""
    lines = _filled(report.about, width)
    lines += [line for note in report.notes for line in _wrapped(note, width)]
    short = in_short(report)
    if short:
        lines += ["", *(f"  {name:<22} {value}" for name, value in short)]
    parts = [_heading(report.title, bold), *map(printable, lines)]
    for section in sections(report):
        parts += ["", _heading(section.title.upper(), bold)]
        parts += map(printable, _section(section, width))
    return "\n".join(line.rstrip() for line in parts) + "\n"


def _heading(words: str, bold: bool) -> str:
    return f"\033[1m{printable(words)}\033[0m" if bold else printable(words)


def _filled(items: Sequence[str], width: int) -> list[str]:
    """As many to a line as there is room for, none of them broken."""
    lines = [""]
    for item in items:
        longer = f"{lines[-1]}, {item}" if lines[-1] else item
        if len(longer) < width:
            lines[-1] = longer
        else:
            lines[-1] += ","
            lines.append(item)
    return lines


def _section(section: Section, width: int) -> Iterator[str]:
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
            rest_line = "  ".join(f"{name}={value}" for name, value in rest if value)
            yield from textwrap.wrap(rest_line, width - 1, initial_indent=" " * 6,
                                     subsequent_indent=" " * 6, break_long_words=False,
                                     break_on_hyphens=False)  # fmt: skip


def _cell(value: str, width: int, is_number: bool) -> str:
    shown = value if len(value) <= width else f"{value[: width - 1]}…"
    return shown.rjust(width) if is_number else shown.ljust(width)


def _wrapped(words: str, width: int) -> list[str]:
    return textwrap.wrap(words, width - 1, break_long_words=False, break_on_hyphens=False)
