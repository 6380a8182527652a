"""What `--help` says above the options, laid out for the terminal's width.

A command's docstring has a title, then examples (indented lines: what to type, two spaces or more,
what it does), then prose. Prose is filled anew; an example that does not fit has its words below.
"""

from __future__ import annotations

import argparse
import re
import textwrap

_EXAMPLE = re.compile(r"(\s+)(\S.*?)(?:\s{2,}(\S.*))?")
_NARROWEST = 24


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    def _fill_text(self, text: str, width: int, indent: str) -> str:
        del indent
        return lay_out(text, width)


def lay_out(text: str, width: int) -> str:
    width = max(width, _NARROWEST)
    return "\n\n".join(_block(block, width) for block in re.split(r"\n\s*\n", text.strip("\n")))


def _block(block: str, width: int) -> str:
    lines = block.splitlines()
    if not lines[0].startswith(" "):
        return textwrap.fill(
            " ".join(line.strip() for line in lines),
            width,
            break_long_words=False,
            break_on_hyphens=False,
        )
    if all(len(line) <= width for line in lines):
        return block
    return "\n".join(_example(what, does, width) for what, does in _examples(lines))


def _examples(lines: list[str]) -> list[tuple[str, str]]:
    """What to type and what it does; a line that is indented more goes on with the one before."""
    found: list[tuple[str, str]] = []
    depth = len(lines[0]) - len(lines[0].lstrip())
    for line in lines:
        if found and found[-1][1] and len(line) - len(line.lstrip()) > depth + 8:
            what, does = found.pop()
            found.append((what, f"{does} {line.strip()}"))
            continue
        read = _EXAMPLE.fullmatch(line)
        assert read is not None
        found.append((read[1] + read[2], read[3] or ""))
    return found


def _example(what: str, does: str, width: int) -> str:
    if not does:
        return what
    below = " " * (len(what) - len(what.lstrip()) + 4)
    told = textwrap.wrap(
        does, width, initial_indent=below, subsequent_indent=below, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
    return "\n".join((what, *told))
