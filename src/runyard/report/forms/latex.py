"""A report's tables in LaTeX, for a paper's appendix: `\\input{report.tex}`, with booktabs."""

from __future__ import annotations

from runyard.report.findings import Report
from runyard.report.sections import sections
from runyard.report.tables import Section, Table

_MARKS = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "…": r"\dots{}",
    '"': r"\textquotedbl{}",
}  # fmt: skip
_PREAMBLE = r"\usepackage[T1]{fontenc} \usepackage{booktabs} \usepackage{graphicx}"


def latex(report: Report) -> str:
    """Every table, each in an environment of its own; and what is to be said in the preamble."""
    parts = [
        f"% {_one_line(report.title)}",
        f"% In the preamble: {_PREAMBLE}",
    ]
    for section in sections(report):
        parts += [latex_table(table, _caption(section, table)) for table in section.tables]
    return "\n\n".join(parts) + "\n"


def latex_table(table: Table, caption: str) -> str:
    columns = "".join("r" if place in table.numbers else "l" for place in range(len(table.head)))
    rows = [" & ".join(plain(cell) for cell in row) + r" \\" for row in table.rows]
    return "\n".join(
        [
            r"\begin{table}[htbp]",
            r"  \centering",
            f"  \\caption{{{plain(caption)}}}",
            f"  \\label{{tab:{table.name}}}",
            # No wider than the text, and no larger than it was.
            r"  \resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
            f"  \\begin{{tabular}}{{{columns}}}",
            r"    \toprule",
            "    " + " & ".join(plain(name) for name in table.head) + r" \\",
            r"    \midrule",
            *(f"    {row}" for row in rows),
            r"    \bottomrule",
            r"  \end{tabular}}",
            r"\end{table}",
        ]
    )


def _caption(section: Section, table: Table) -> str:
    words = " ".join(section.words)
    name = section.title if len(section.tables) == 1 else f"{section.title}: {table.title}"
    return f"{name}. {words}".strip() if words else f"{name}."


def plain(text: str) -> str:
    """As it is to be read, whatever TeX would take it for."""
    return "".join(_MARKS.get(letter, letter) for letter in _one_line(text))


def _one_line(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)
