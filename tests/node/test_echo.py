"""What programs print, shown: in whole lines, and never at the price of waiting."""

from __future__ import annotations

import os
from pathlib import Path

from runyard.node.attempt.echo import OUTPUT_FILE, Show


def test_lines_are_whole_and_marked_and_every_byte_is_kept(tmp_path: Path) -> None:
    read, write = os.pipe()
    show = Show(write)
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    first, second = show.echo("first", str(one)), show.echo("second", str(two))
    first.take(b"a piece ")
    second.take(b"\xff\n\nend")
    first.take(b"of a line\n")
    first.close()
    second.close()
    show.close()
    with os.fdopen(read, "rb") as shown:
        assert shown.read() == b"second\t\xff\nsecond\t\nfirst\ta piece of a line\nsecond\tend\n"
    assert (one / OUTPUT_FILE).read_bytes() == b"a piece of a line\n"
    assert (two / OUTPUT_FILE).read_bytes() == b"\xff\n\nend"


def test_who_does_not_read_holds_nobody_up(tmp_path: Path) -> None:
    read, write = os.pipe()
    show = Show(write)
    echo = show.echo("loud", str(tmp_path))
    line = b"x" * 1000 + b"\n"
    for _ in range(3000):  # Three megabytes, and a pipe holds 64 kilobytes.
        echo.take(line)
    assert (tmp_path / OUTPUT_FILE).stat().st_size == 3000 * len(line)
    os.set_blocking(read, False)
    shown = b""
    for _ in range(100):
        while True:
            try:
                shown += os.read(read, 1 << 16)
            except BlockingIOError:
                break
        echo.take(b"more\n")
    assert b"lines are in output.log alone\n" in shown
    assert all(part in (b"", b"loud\tmore", b"loud\t" + line[:-1]) or b"alone" in part
               for part in shown.split(b"\n")[:-1])  # fmt: skip
    os.close(read)
    echo.take(b"nobody is there\n")
    echo.close()
    show.close()
