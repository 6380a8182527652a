"""Lines as a terminal shows them in the end."""

from __future__ import annotations

import pytest

from runyard.server.processes.consoles import as_seen


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        ("plain", "plain"),
        ("", ""),
        ("10%\r20%\r100%", "100%"),
        ("longer text\rshort", "shortr text"),
        ("longer text\r\x1b[Kshort", "short"),
        ("text\r", "text"),
        ("ab\bc", "ac"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("abc\x1b[2K\rd", "d"),
        ("abc\x1b[1G\x1b[Cx", "axc"),
        ("abc\x1b[2Dx", "axc"),
        ("a\x1b[5Cb", "a     b"),
        ("\x1b", ""),
        ("a\x1b[999999999999Cb", "a" + " " * 10_000 + "b"),
        ("é∞\r∞", "∞∞"),
    ],
)
def test_what_is_left(line: str, seen: str) -> None:
    assert as_seen(line) == seen
