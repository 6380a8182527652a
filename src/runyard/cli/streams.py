"""Where commands print: streams that show control characters instead of passing them on.

What runyard itself means for the terminal, or for a program that reads its output, goes to
`unfiltered(stream)`.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any, TextIO, cast

from runyard.printable import plain_console, printable


class PrintableStream:
    """A text stream that shows control characters instead of passing them on."""

    def __init__(self, stream: TextIO) -> None:
        self.unfiltered = stream

    def write(self, text: str) -> int:
        self.unfiltered.write(printable(text))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unfiltered, name)


def unfiltered(stream: TextIO) -> TextIO:
    """The stream itself, for what is meant for the terminal or for a program that reads us."""
    return stream.unfiltered if isinstance(stream, PrintableStream) else stream


def print_console(text: str, *, raw: bool) -> None:
    """What a program printed: as it is, or as plain lines."""
    if raw:
        unfiltered(sys.stdout).write(text)
    else:
        sys.stdout.write(plain_console(text))
    sys.stdout.flush()


def print_marked(label: str, lines: list[str], *, raw: bool) -> None:
    """Lines that a program printed, each behind the name of their source."""
    if not raw:
        lines = plain_console("\n".join(lines)).split("\n") if lines else []
    mark = printable(label)
    print_console("".join(f"{mark}\t{line}\n" for line in lines), raw=True)


@contextlib.contextmanager
def printable_streams() -> Iterator[None]:
    """Within it, everything that is printed is text."""
    before = sys.stdout, sys.stderr
    sys.stdout = cast(TextIO, PrintableStream(before[0]))
    sys.stderr = cast(TextIO, PrintableStream(before[1]))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
