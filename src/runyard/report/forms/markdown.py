"""A report in Markdown: what a repository, a wiki or a paper's draft takes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from runyard.report.findings import Report
from runyard.report.sections import in_short, sections
from runyard.report.tables import Table


def markdown(report: Report, plots: Mapping[str, str] | None = None) -> str:
    """`plots` are the files of those that lie beside it, by name."""
    lines = [f"# {_plain(report.title)}", "", _plain(". ".join(report.about)), ""]
    lines += [f"- {_plain(name)}: **{_plain(value)}**" for name, value in in_short(report)]
    lines += ["", *(f"_{_plain(note)}_" for note in report.notes)]
    for section in sections(report):
        lines += ["", f"## {_plain(section.title)}", ""]
        lines += [f"{_plain(words)}\n" for words in section.words]
        lines += [f"- {_plain(point)}" for point in section.points]
        for table in section.tables:
            if len(section.tables) > 1:
                lines += ["", f"**{_plain(table.title)}**"]
            lines += ["", markdown_table(table)]
        for name in section.plots:
            if plots and name in plots:
                lines += ["", f"![{name}]({plots[name]})"]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def markdown_table(table: Table) -> str:
    rule = ["---:" if place in table.numbers else "---" for place in range(len(table.head))]
    rows = [[_plain(name) for name in table.head], rule]
    rows += [[_plain(cell) for cell in row] for row in table.rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _plain(text: str) -> str:
    """As it is to be read: what Markdown or HTML would take for its own is marked."""
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    for letter in "\\`*_[]<>|#":
        plain = plain.replace(letter, f"\\{letter}")
    return plain
