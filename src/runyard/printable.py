"""What is printed is text: control characters in what other people wrote do nothing here.

A run's name, a config or a console comes from whoever logged it, and a terminal obeys what stands
in it: it moves the cursor, retitles the window, fills the clipboard.
"""

from __future__ import annotations

import re

# Control characters except tab and newline, and those that reverse the direction of text.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
# Colours, cursor movements, window titles: what programs write to a terminal on purpose.
_SEQUENCES = re.compile(
    "\x1b(?:"
    r"\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    "|[]P^_X][^\x07\x1b\n]*(?:\x07|\x1b\\\\)?"  # OSC and its like: titles, links, the clipboard
    "|[(-/].)"  # character sets
)


def printable(text: str) -> str:
    """The text with its control characters shown as text."""
    return _CONTROLS.sub(_shown, text)


def numbered(count: int, noun: str) -> str:
    """`1 trial`, `2 trials`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def plain_console(text: str) -> str:
    """The output of a program as lines of text: without colours, each redrawn line on its own."""
    return printable(_SEQUENCES.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))


def json_escaped(text: str) -> str:
    """JSON text in which control characters are escaped."""
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _shown(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
